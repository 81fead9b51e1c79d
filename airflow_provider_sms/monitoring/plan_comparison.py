"""The plan of a campaign's current runs beside the outcome of their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from airflow_provider_sms.ledger.schema import claimant, progress
from airflow_provider_sms.ledger.statistics import Counts, total
from airflow_provider_sms.monitoring.attempts import json_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader
    from airflow_provider_sms.monitoring.models import Campaign


class PlanComparison(NamedTuple):
    """Plans of the current runs, and the counts of their requests.

    :param plans: for each task and mapped copy, the first plan that had anything to send.
    """

    plans: Sequence[Mapping[str, Any]]
    counts: Counts


def compare_with_plan(ledger: LedgerReader, campaign: Campaign) -> PlanComparison:
    """Return the plans of a campaign's current runs, and the counts of all attempts of these runs.

    :raises SmsError: the ledger cannot be read.
    """
    runs = {(each.dag_id, each.task_id, each.run_id) for each in (attempt.progress for attempt in campaign.attempts)}
    query = (
        select(
            claimant.c.id,
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            progress.c.plan,
        )
        .select_from(progress.join(claimant))
        .where(progress.c.campaign_id == campaign.id)
        .order_by(claimant.c.id)
    )
    plans: dict[tuple[Any, ...], dict[str, Any]] = {}
    with ledger.read() as connection:
        rows = [row for row in connection.execute(query) if (row.dag_id, row.task_id, row.run_id) in runs]
        for row in rows:
            plan = json_object(row.plan)
            if plan.get("to_send"):
                plans.setdefault((row.dag_id, row.task_id, row.run_id, row.map_index), plan)
    of_runs = (campaign.counts_by_claimant.get(row.id, Counts()) for row in rows)
    return PlanComparison(list(plans.values()), total(of_runs))
