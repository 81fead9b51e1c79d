"""The list of campaigns, newest first, and single campaigns with their state and counts.

A page of the list reads the campaigns that it shows, and the DAGs of a bounded number of others, however many the
ledger has: people leave the list open, and it is read again every few seconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, func, select

from airflow_provider_sms.ledger import transitions
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import IS_PAUSED
from airflow_provider_sms.ledger.schema import attempt, campaign
from airflow_provider_sms.monitoring.attempts import attempts_by_campaign
from airflow_provider_sms.monitoring.counts import counts_of
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.status import campaign_state

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

WINDOW, WINDOWS = 100, 10
"""Campaigns that are read at a time, and how often a page of the list does so to find those that its reader may see."""


class CampaignPage(NamedTuple):
    """A page of the list.

    :param older: the id before which the next page begins; None means that there are no older campaigns.
    """

    campaigns: Sequence[Campaign]
    older: int | None


def list_campaigns(
    ledger: LedgerBackend, *, may_see: Callable[[str], bool], limit: int, before: int | None = None
) -> CampaignPage:
    """Return campaigns, newest first, of those that the reader may see.

    :param may_see: returns whether the reader may see a DAG.
    :param before: return only campaigns older than this one; None means from the newest on.
    """
    with ledger.read() as connection:
        ids, older = _newest(connection, may_see, limit, before)
        return CampaignPage(_read(connection, ids, ledger.clock()), older)


def _newest(
    connection: Connection, may_see: Callable[[str], bool], limit: int, before: int | None
) -> tuple[list[int], int | None]:
    """Return the ids of a page of the list, and the id before which the next page begins; None at the end."""
    found: list[int] = []
    for _ in range(WINDOWS):
        query = select(campaign.c.id).order_by(campaign.c.id.desc()).limit(WINDOW)
        ids = connection.scalars(query if before is None else query.where(campaign.c.id < before)).all()
        if not ids:
            return found, None
        # A round number: the id of a campaign that the reader may not see would tell that there is one.
        before = ids[0] - ids[0] % WINDOW
        visible = _visible(connection, [each for each in ids if each >= before], may_see)
        found += sorted(visible, reverse=True)
        if len(found) > limit:
            return found[:limit], found[limit - 1]
    return found, before or None


def _visible(connection: Connection, ids: Sequence[int], may_see: Callable[[str], bool]) -> list[int]:
    """Return which campaigns were sent only by DAGs that the reader may see."""
    return [each for each, dags in _dags(connection, ids).items() if all(map(may_see, sorted(dags)))]


def _dags(connection: Connection, ids: Sequence[int]) -> dict[int, set[str]]:
    """Return every DAG that ever sent a campaign, by campaign."""
    found: dict[int, set[str]] = defaultdict(set)
    query = select(attempt.c.campaign_id, attempt.c.dag_id).distinct()
    for piece in in_pieces(ids):
        for campaign_id, dag_id in connection.execute(query.where(attempt.c.campaign_id.in_(piece))):
            found[campaign_id].add(dag_id)
    return found


def _read(connection: Connection, ids: Sequence[int], now: float) -> list[Campaign]:
    """Return campaigns, newest first, without those that the ledger does not have."""
    counts, attempts = counts_of(connection, ids, now), attempts_by_campaign(connection, ids, now)
    query = select(campaign.c.id, campaign.c.name, campaign.c.created_at, IS_PAUSED.label("is_paused"))
    rows = [row for piece in in_pieces(ids) for row in connection.execute(query.where(campaign.c.id.in_(piece)))]

    def made(row: Any) -> Campaign:
        state = campaign_state(attempts[row.id], counts[row.id], paused=row.is_paused)
        return Campaign(row.id, row.name, row.created_at, state, counts[row.id], attempts[row.id])

    return [made(row) for row in sorted(rows, key=lambda row: -row.id) if row.id in attempts]


def dags_of_campaign(ledger: LedgerBackend, campaign_id: int) -> frozenset[str]:
    """Return every DAG that ever sent any of a campaign; empty means that there is no such campaign."""
    with ledger.read() as connection:
        return frozenset(_dags(connection, [campaign_id])[campaign_id])


def find_campaign(ledger: LedgerBackend, campaign_id: int) -> Campaign | None:
    """Return a campaign; None means that there is no such campaign."""
    with ledger.read() as connection:
        return next(iter(_read(connection, [campaign_id], ledger.clock())), None)


def campaign_of_task(
    ledger: LedgerBackend,
    dag_id: str,
    run_ids: Collection[str],
    task_id: str,
    map_index: int | None,
    *,
    may_see: Callable[[str], bool],
) -> int | None:
    """Return the id of the newest campaign that a task instance sent and the list shows; None if there is none.

    :param run_ids: spellings of the run's id.
    :param map_index: of a mapped copy; None means all copies.
    :param may_see: returns whether the reader may see a DAG.
    """
    same_task = and_(attempt.c.dag_id == dag_id, attempt.c.run_id.in_(run_ids), attempt.c.task_id == task_id)
    if map_index is not None:
        same_task = and_(same_task, attempt.c.map_index == map_index)
    sent = select(attempt.c.campaign_id).where(same_task, attempt.c.campaign_id.is_not(None))
    newest_first = sent.group_by(attempt.c.campaign_id).order_by(func.max(attempt.c.id).desc())
    with ledger.read() as connection:
        ids = connection.scalars(newest_first).all()
        visible = set(_visible(connection, ids, may_see))
    return next((each for each in ids if each in visible), None)


def texted_twice(ledger: LedgerBackend, campaign_id: int) -> list[str]:
    """Return sentences about requests that were accepted after others could claim their messages."""
    with ledger.read() as connection:
        return [f"Request {each.request_id}: {each}." for each in transitions.texted_twice(connection, campaign_id)]
