"""What the runs of a campaign that count planned, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from airflow_provider_sms.ledger.schema import claimant, progress
from airflow_provider_sms.ledger.statistics import counts_of
from airflow_provider_sms.monitoring.attempts import object_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader
    from airflow_provider_sms.ledger.statistics import Counts
    from airflow_provider_sms.monitoring.models import Campaign


class Run(NamedTuple):
    """What the runs that count planned at first, and what became of their requests.

    :param plans: of each task and mapped copy the first one that was to send anything.
    """

    plans: Sequence[Mapping[str, Any]]
    counts: Counts


def run_of(ledger: LedgerReader, campaign: Campaign) -> Run:
    """Give what the runs of a campaign that count planned, and what became of it, whichever try did it.

    :raises SmsError: the ledger cannot be read.
    """
    runs = {(note.dag_id, note.task_id, note.run_id) for note in (each.note for each in campaign.tries)}
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
            plan = object_of(row.plan)
            if plan.get("to_send"):
                plans.setdefault((row.dag_id, row.task_id, row.run_id, row.map_index), plan)
        ids = [row.id for row in rows]
        counts = counts_of(connection, [campaign.id], ledger.clock(), made_by=ids)[campaign.id]
    return Run(list(plans.values()), counts)
