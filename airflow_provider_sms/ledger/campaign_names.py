"""Names of campaigns: the one that a task is given, or the default of its DAG run.

A campaign is a name in the ledger, so a changed name texts everybody again. Names that older versions of this package
wrote are therefore recognised where the ledger has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, select

from airflow_provider_sms.ledger.attempts import of_run
from airflow_provider_sms.ledger.backend import find_campaign, require_campaign
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.ledger.schema import campaign, claimant, progress, request

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


def given_name_in(store: LedgerBackend, given: str) -> str:
    """Return the name under which a ledger has a campaign: exactly as given, if the ledger has that one already.

    :raises InputError: it cannot be a campaign's name; says why.
    :raises LedgerError: when the ledger cannot be read.
    """
    name = read_name(given)
    if name == given:
        return name
    with store.read() as connection:
        return name if find_campaign(connection, given) is None else given


def default_name_in(store: LedgerBackend, who: Claimant) -> str:
    """Return the name under which a ledger has the default campaign of a task and a DAG run.

    Older versions called it ``{dag_id}.{task_id}.{run_id}``. A task that has sent anything under that name keeps it. A
    task that finds only requests of other tasks there takes the new name, since two tasks could share the old one.

    :raises LedgerError: when the ledger cannot be read.
    """
    former = f"{who.dag_id}.{who.task_id}.{who.run_id}"
    with store.read() as connection:
        campaign_id = find_campaign(connection, former)
        if campaign_id is None:
            return default_name(who)
        requests = select(request.c.id).where(request.c.campaign_id == campaign_id).limit(1)
        own = requests.select_from(request.join(claimant)).where(of_run(who))
        if connection.execute(own).scalar() is not None:
            return former
        # The task may have asked for approval there, or be paused.
        recorded = and_(progress.c.campaign_id == campaign_id, of_run(who))
        query = select(progress.c.claimant_id).select_from(progress.join(claimant)).where(recorded).limit(1)
        is_its_own = connection.execute(requests).scalar() is None and connection.execute(query).scalar() is not None
        return former if is_its_own else default_name(who)


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
