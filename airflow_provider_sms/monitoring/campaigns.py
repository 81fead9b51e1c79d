"""The list of campaigns, newest first, and one of them: how it stands."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select, true

from airflow_provider_sms.ledger.schema import campaign, claimant, progress, request
from airflow_provider_sms.ledger.statistics import counts_of
from airflow_provider_sms.monitoring.attempts import notes_of, of_dags, standing_of, tries_of, unnoted
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.status import current, state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader


class CampaignPage(NamedTuple):
    """A page of the list.

    :param campaigns: on this page.
    :param found: campaigns on all pages.
    :param by_state: campaigns of the name that was asked for, by state.
    """

    campaigns: Sequence[Campaign]
    found: int
    by_state: Mapping[str, int]


def dag_ids(ledger: LedgerReader) -> list[str]:
    """Give the DAGs that sent anything, by name.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        return list(connection.execute(select(claimant.c.dag_id).distinct().order_by(claimant.c.dag_id)).scalars())


def list_campaigns(
    ledger: LedgerReader, *, hidden: Collection[str], name: str = "", state: str | None = None, limit: int, offset: int
) -> CampaignPage:
    """Give campaigns, newest first.

    :param hidden: DAGs whose campaigns are left out.
    :param name: a part of their names; empty: of any name.
    :param state: one of :data:`~airflow_provider_sms.monitoring.status.STATES`; None: all.
    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        query = select(campaign.c.id, campaign.c.name, campaign.c.created_at).order_by(campaign.c.id.desc())
        if name:
            part = name.replace("/", "//").replace("%", "/%").replace("_", "/_")
            query = query.where(campaign.c.name.ilike(f"%{part}%", escape="/"))
        named = connection.execute(query).all()
        notes = {**unnoted(connection, true()), **notes_of(connection, true())}
        theirs = of_dags(connection, hidden)
        seen = [
            row
            for row in named
            if row.id in notes and row.id not in theirs and not any(note.dag_id in hidden for note in notes[row.id])
        ]
        counting = {row.id: current(notes[row.id], now) for row in seen}
        standing = standing_of(connection, now)
        states = {each: state_of(counted, now=now, **standing(each)) for each, counted in counting.items()}
        by_state: dict[str, int] = defaultdict(int)
        for found in states.values():
            by_state[found] += 1
        matching = [row for row in seen if state is None or states[row.id] == state]
        # Beyond the last page, that one: campaigns may have been forgotten since somebody looked.
        start = min(offset, max(len(matching) - 1, 0) // limit * limit)
        shown = matching[start : start + limit]
        ids = [row.id for row in shown]
        counts = counts_of(connection, ids, now)
        tries = tries_of(connection, {each: counting[each] for each in ids}, now)
        campaigns = [
            Campaign(row.id, row.name, row.created_at, states[row.id], counts[row.id], tries[row.id]) for row in shown
        ]
    return CampaignPage(campaigns, len(matching), by_state)


def find_campaign(ledger: LedgerReader, campaign_id: int) -> tuple[Campaign, frozenset[str]] | None:
    """Give a campaign and every DAG that ever sent of it; None where there is none.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        row = connection.execute(select(campaign).where(campaign.c.id == campaign_id)).first()
        its = campaign.c.id == campaign_id
        noted = {**unnoted(connection, its), **notes_of(connection, progress.c.campaign_id == campaign_id)}
        notes = noted.get(campaign_id)
        if row is None or notes is None:
            return None
        counting = current(notes, now)
        state = state_of(counting, now=now, **standing_of(connection, now, its)(campaign_id))
        claimed = select(request.c.claimant_id).where(request.c.campaign_id == campaign_id)
        dags = set(connection.execute(select(claimant.c.dag_id).where(claimant.c.id.in_(claimed)).distinct()).scalars())
        counts = counts_of(connection, [campaign_id], now)[campaign_id]
        tries = tries_of(connection, {campaign_id: counting}, now)[campaign_id]
    found = Campaign(row.id, row.name, row.created_at, state, counts, tries)
    return found, frozenset({*dags, *(note.dag_id for note in notes)})


def campaigns_of_task(
    ledger: LedgerReader, dag_id: str, run_id: str, task_id: str, map_index: int | None
) -> list[tuple[int, str]]:
    """Give the ids and names of the campaigns that a task instance sent of, newest first.

    :param map_index: of a mapped copy; None: of all copies.
    :raises SmsError: the ledger cannot be read.
    """
    its = and_(claimant.c.dag_id == dag_id, claimant.c.run_id == run_id, claimant.c.task_id == task_id)
    if map_index is not None:
        its = and_(its, claimant.c.map_index == map_index)
    query = (
        select(campaign.c.id, campaign.c.name)
        .where(campaign.c.id.in_(select(progress.c.campaign_id).select_from(progress.join(claimant)).where(its)))
        .order_by(campaign.c.id.desc())
    )
    with ledger.read() as connection:
        return [(row.id, row.name) for row in connection.execute(query)]
