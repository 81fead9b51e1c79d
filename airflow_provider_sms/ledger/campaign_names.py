"""Names of campaigns: the default of a DAG run, and those that the ledger has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from airflow_provider_sms.ledger.backend import require_campaign
from airflow_provider_sms.ledger.schema import campaign

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

NAMES_COMPARED = 1_000
"""The latest campaigns, among which a mistyped name is looked for: a ledger may have one for each DAG run."""


def default_name(who: Claimant) -> str:
    """Return the default name of the campaign of a task and a DAG run.

    The ids of DAGs and tasks have letters, digits, dashes, dots and underscores only, so no two tasks share a name. A
    run's id may contain anything, and comes last.
    """
    return f"{who.dag_id}/{who.task_id}/{who.run_id}"


def latest_names(store: LedgerBackend) -> list[str]:
    """Return the names of the latest campaigns, newest first.

    :raises LedgerError: when the ledger cannot be read.
    """
    query = select(campaign.c.name).order_by(campaign.c.id.desc()).limit(NAMES_COMPARED)
    with store.read() as connection:
        return list(connection.execute(query).scalars())


def campaign_id(store: LedgerBackend, name: str) -> int:
    """Return the id of a campaign.

    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        return require_campaign(connection, name)
