"""The list of campaigns, newest first, and single campaigns with their state and counts.

:mod:`airflow_provider_sms.monitoring.counts` counts requests, and :mod:`airflow_provider_sms.ledger.attempts` rows
without one. A page of the list reads the campaigns that it shows and a bounded number of others, however many the
ledger has: people leave the list open, and it is read again every few seconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, select

from airflow_provider_sms.ledger import transitions
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.schema import attempt, campaign
from airflow_provider_sms.monitoring.attempts import campaign_flags, load_attempts, progress_by_campaign
from airflow_provider_sms.monitoring.counts import counts_of
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.status import campaign_state, current_attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

EXAMINED = 1_000
"""Campaigns that one page of the list looks at: a tenth of a second in a file, whatever is searched for."""
_FIRST_WINDOW, _LARGEST_WINDOW = 50, 800
"""Campaigns that are read at a time: few at first, which is enough for a page if nothing is searched for."""
_ENDS = 50
"""See :func:`place_above`; no more than the campaigns of the smallest window, so that each page goes on from there."""


class NamedCampaign(NamedTuple):
    """A campaign by its id in the ledger."""

    id: int
    name: str


class CampaignPage(NamedTuple):
    """A page of the list.

    :param older: the id before which the next page begins; None means that there are no older campaigns.
    :param examined_since: if the page may lack older ones because it looked at as many as it may: when the oldest of
        these that the reader may see was created, seconds since the epoch. Nothing tells when others were created. None
        if the reader may see none of them, or the page lacks none.
    """

    campaigns: Sequence[Campaign]
    older: int | None
    examined_since: float | None


def list_campaigns(
    ledger: LedgerBackend,
    *,
    may_see: Callable[[str], bool],
    name: str = "",
    state: str | None = None,
    limit: int,
    before: int | None = None,
) -> CampaignPage:
    """Return campaigns, newest first, of those that the reader may see.

    :param may_see: returns whether the reader may see a DAG.
    :param name: a part of the name, in any case; empty means any name.
    :param state: one of :data:`~airflow_provider_sms.monitoring.status.STATES`; None means any state.
    :param before: return only campaigns older than this one; None means from the newest on.
    """
    part = name.casefold()
    matching: list[tuple[Any, str, Any]] = []
    seen: list[Any] = []
    examined, older, since = 0, None, None
    with ledger.read() as connection:
        now = ledger.clock()
        for rows in newest_first(connection, before):
            visible = visible_ids(connection, [row.id for row in rows], may_see)
            seen += [row for row in rows if row.id in visible]
            named = [row for row in rows if row.id in visible and part in row.name.casefold()]
            reported = progress_by_campaign(connection, [row.id for row in named])
            current = {each: current_attempts(attempts, now) for each, attempts in reported.items()}
            flags = campaign_flags(connection, now, sorted(current))
            for row in (each for each in named if each.id in current):
                found = campaign_state(current[row.id], now=now, **flags(row.id))
                if state in (None, found):
                    matching.append((row, found, current[row.id]))
            examined += len(rows)
            if len(matching) > limit:
                older = matching[limit - 1][0].id
                break
            if examined >= EXAMINED:
                older = place_above(rows[-1].id)
                matching = [each for each in matching if each[0].id >= older]
                since = next((row.created_at for row in reversed(seen) if row.id >= older), None)
                break
        shown = matching[:limit]
        counts = counts_of(connection, [row.id for row, *_ in shown], now)
        attempts = load_attempts(connection, {row.id: each for row, _, each in shown}, now)
        campaigns = [
            Campaign(row.id, row.name, row.created_at, found, counts[row.id], attempts[row.id])
            for row, found, _ in shown
        ]
    return CampaignPage(campaigns, older, since)


def newest_first(connection: Connection, before: int | None = None) -> Iterator[Sequence[Any]]:
    """Yield the rows of campaigns, newest first, in windows that grow.

    :param before: yield only campaigns older than this one; None means from the newest on.
    """
    size = _FIRST_WINDOW
    while True:
        query = select(campaign).order_by(campaign.c.id.desc()).limit(size)
        rows = connection.execute(query if before is None else query.where(campaign.c.id < before)).all()
        if rows:
            yield rows
        if len(rows) < size:
            return
        before = rows[-1].id
        size = min(2 * size, _LARGEST_WINDOW)


def place_above(campaign_id: int) -> int:
    """Return the multiple of :data:`_ENDS` at or above an id, as the place from which a reader goes on.

    The id itself would tell of a campaign that the reader may not see.
    """
    return campaign_id + -campaign_id % _ENDS


def visible_ids(connection: Connection, ids: Sequence[int], may_see: Callable[[str], bool]) -> set[int]:
    """Return which campaigns were sent only by DAGs that the reader may see.

    :param may_see: returns whether the reader may see a DAG.
    """
    return {each for each, dags in _dags(connection, ids).items() if all(map(may_see, sorted(dags)))}


def _dags(connection: Connection, ids: Sequence[int]) -> dict[int, set[str]]:
    """Return every DAG that ever sent a campaign, by campaign."""
    found: dict[int, set[str]] = defaultdict(set)
    query = select(attempt.c.campaign_id, attempt.c.dag_id).distinct()
    for piece in in_pieces(ids):
        for campaign_id, dag_id in connection.execute(query.where(attempt.c.campaign_id.in_(piece))):
            found[campaign_id].add(dag_id)
    return found


def dags_of_campaign(ledger: LedgerBackend, campaign_id: int) -> frozenset[str]:
    """Return every DAG that ever sent any of a campaign; empty means that there is no such campaign."""
    with ledger.read() as connection:
        return frozenset(_dags(connection, [campaign_id])[campaign_id])


def name_campaign(ledger: LedgerBackend, campaign_id: int) -> NamedCampaign | None:
    """Return a campaign without its counts; None means that there is no such campaign."""
    with ledger.read() as connection:
        row = connection.execute(select(campaign.c.id, campaign.c.name).where(campaign.c.id == campaign_id)).first()
    return None if row is None else NamedCampaign(*row)


def find_campaign(ledger: LedgerBackend, campaign_id: int) -> Campaign | None:
    """Return a campaign; None means that there is no such campaign."""
    with ledger.read() as connection:
        now = ledger.clock()
        row = connection.execute(select(campaign).where(campaign.c.id == campaign_id)).first()
        reported = progress_by_campaign(connection, [campaign_id]).get(campaign_id)
        if row is None or reported is None:
            return None
        current = current_attempts(reported, now)
        state = campaign_state(current, now=now, **campaign_flags(connection, now, [campaign_id])(campaign_id))
        counts = counts_of(connection, [campaign_id], now)[campaign_id]
        attempts = load_attempts(connection, {campaign_id: current}, now)[campaign_id]
    return Campaign(row.id, row.name, row.created_at, state, counts, attempts)


def campaigns_of_task(
    ledger: LedgerBackend,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int | None,
    *,
    may_see: Callable[[str], bool],
) -> list[NamedCampaign]:
    """Return ids and names of the campaigns that a task instance sent, newest first, without those the list hides.

    :param map_index: of a mapped copy; None means all copies.
    :param may_see: returns whether the reader may see a DAG.
    """
    same_task = and_(attempt.c.dag_id == dag_id, attempt.c.run_id == run_id, attempt.c.task_id == task_id)
    if map_index is not None:
        same_task = and_(same_task, attempt.c.map_index == map_index)
    query = (
        select(campaign.c.id, campaign.c.name)
        .where(campaign.c.id.in_(select(attempt.c.campaign_id).where(same_task)))
        .order_by(campaign.c.id.desc())
    )
    with ledger.read() as connection:
        found = [NamedCampaign(*row) for row in connection.execute(query)]
        visible = visible_ids(connection, [each.id for each in found], may_see)
    return [each for each in found if each.id in visible]


def texted_twice(ledger: LedgerBackend, campaign_id: int) -> list[str]:
    """Return sentences about requests that were accepted after others could claim their messages."""
    with ledger.read() as connection:
        return [f"Request {each.request_id}: {each}." for each in transitions.texted_twice(connection, campaign_id)]
