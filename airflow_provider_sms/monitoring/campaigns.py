"""The list of campaigns, newest first, and single campaigns with their state and counts.

:mod:`airflow_provider_sms.ledger.statistics` counts.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select

from airflow_provider_sms.ledger.schema import campaign, claimant, progress, request
from airflow_provider_sms.ledger.statistics import counts_of
from airflow_provider_sms.monitoring.attempts import (
    campaign_flags,
    campaigns_of_dags,
    load_attempts,
    progress_by_campaign,
)
from airflow_provider_sms.monitoring.models import Campaign
from airflow_provider_sms.monitoring.status import campaign_state, current_attempts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader


class CampaignPage(NamedTuple):
    """A page of the list.

    :param found: campaigns on all pages.
    :param by_state: campaigns that match the name, by state, whichever state was asked for.
    """

    campaigns: Sequence[Campaign]
    found: int
    by_state: Mapping[str, int]


def dag_ids(ledger: LedgerReader) -> list[str]:
    """Return the DAGs that sent anything, by name.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        return list(connection.execute(select(claimant.c.dag_id).distinct().order_by(claimant.c.dag_id)).scalars())


def list_campaigns(
    ledger: LedgerReader, *, hidden: Collection[str], name: str = "", state: str | None = None, limit: int, offset: int
) -> CampaignPage:
    """Return campaigns, newest first.

    :param hidden: DAGs whose campaigns are left out.
    :param name: a part of the name, in any case; empty means any name.
    :param state: one of :data:`~airflow_provider_sms.monitoring.status.STATES`; None means any state.
    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        query = select(campaign.c.id, campaign.c.name, campaign.c.created_at).order_by(campaign.c.id.desc())
        if name:
            part = name.replace("/", "//").replace("%", "/%").replace("_", "/_")
            query = query.where(campaign.c.name.ilike(f"%{part}%", escape="/"))
        named = connection.execute(query).all()
        reported = progress_by_campaign(connection)
        hidden_ids = campaigns_of_dags(connection, hidden)
        visible = [
            row
            for row in named
            if row.id in reported
            and row.id not in hidden_ids
            and not any(each.dag_id in hidden for each in reported[row.id])
        ]
        current = {row.id: current_attempts(reported[row.id], now) for row in visible}
        flags = campaign_flags(connection, now)
        states = {each: campaign_state(attempts, now=now, **flags(each)) for each, attempts in current.items()}
        by_state: dict[str, int] = defaultdict(int)
        for found in states.values():
            by_state[found] += 1
        matching = [row for row in visible if state is None or states[row.id] == state]
        # An offset beyond the last page shows the last page: campaigns may have been purged in between.
        start = min(offset, max(len(matching) - 1, 0) // limit * limit)
        shown = matching[start : start + limit]
        ids = [row.id for row in shown]
        counts = counts_of(connection, ids, now)
        attempts = load_attempts(connection, {each: current[each] for each in ids}, now)
        campaigns = [
            Campaign(row.id, row.name, row.created_at, states[row.id], counts[row.id], attempts[row.id])
            for row in shown
        ]
    return CampaignPage(campaigns, len(matching), by_state)


def find_campaign(ledger: LedgerReader, campaign_id: int) -> tuple[Campaign, frozenset[str]] | None:
    """Return a campaign and every DAG that ever sent any of it; None means that there is no such campaign.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        row = connection.execute(select(campaign).where(campaign.c.id == campaign_id)).first()
        reported = progress_by_campaign(connection, campaign_id).get(campaign_id)
        if row is None or reported is None:
            return None
        current = current_attempts(reported, now)
        state = campaign_state(current, now=now, **campaign_flags(connection, now, campaign_id)(campaign_id))
        claimed = select(request.c.claimant_id).where(request.c.campaign_id == campaign_id)
        dags = set(connection.execute(select(claimant.c.dag_id).where(claimant.c.id.in_(claimed)).distinct()).scalars())
        counts = counts_of(connection, [campaign_id], now)[campaign_id]
        attempts = load_attempts(connection, {campaign_id: current}, now)[campaign_id]
    found = Campaign(row.id, row.name, row.created_at, state, counts, attempts)
    return found, frozenset({*dags, *(each.dag_id for each in reported)})


def campaigns_of_task(
    ledger: LedgerReader, dag_id: str, run_id: str, task_id: str, map_index: int | None
) -> list[tuple[int, str]]:
    """Return ids and names of the campaigns that a task instance sent, newest first.

    :param map_index: of a mapped copy; None means all copies.
    :raises SmsError: the ledger cannot be read.
    """
    same_task = and_(claimant.c.dag_id == dag_id, claimant.c.run_id == run_id, claimant.c.task_id == task_id)
    if map_index is not None:
        same_task = and_(same_task, claimant.c.map_index == map_index)
    query = (
        select(campaign.c.id, campaign.c.name)
        .where(campaign.c.id.in_(select(progress.c.campaign_id).select_from(progress.join(claimant)).where(same_task)))
        .order_by(campaign.c.id.desc())
    )
    with ledger.read() as connection:
        return [(row.id, row.name) for row in connection.execute(query)]
