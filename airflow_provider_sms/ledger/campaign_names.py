"""What campaigns are called: the name that a task is given, the one that it has where it is given none.

A campaign is a name in the ledger, so whatever changes a name texts everybody again. Names that older versions of this
package wrote are recognised, therefore, where the ledger has them.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from sqlalchemy import and_, select

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.attempts import of_run
from airflow_provider_sms.ledger.schema import campaign, claimant, progress, request

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

MAX_CHARACTERS = 1000
"""What the ledger's column holds."""

_REFUSED = {"Cc": "control character", "Cs": "half of a character", "Zl": "line break", "Zp": "line break"}
_INSTEAD = "Nothing was sent. Give the campaign a name, or leave campaign out for one of each task and DAG run"


def default_name(who: Claimant) -> str:
    """Return the name of the campaign of a task and a DAG run.

    The ids of DAGs and tasks have letters, digits, dashes, dots and underscores only, so that no two tasks have one
    name. A run's id may have anything, and comes last.
    """
    return f"{who.dag_id}/{who.task_id}/{who.run_id}"


def read_name(given: object) -> str:
    """Return the name that a task is given, without blanks around it and in Unicode's composed form (NFC).

    :raises InputError: it is none.
    """
    if given is None or (isinstance(given, str) and given.strip() == "None"):
        raise InputError(
            "campaign is None, once its template is rendered: all runs of which that is so would be one campaign, and "
            f"only the first of them would text anybody. {_INSTEAD}"
        )
    if not isinstance(given, str):
        raise InputError(f"campaign must be text, and is of the type {type(given).__name__}. {_INSTEAD}")
    name = unicodedata.normalize("NFC", given).strip()
    if not name:
        raise InputError(f"campaign is empty, once its template is rendered. {_INSTEAD}")
    if len(name) > MAX_CHARACTERS:
        raise InputError(f"campaign has {len(name)} characters, and may have {MAX_CHARACTERS}. {_INSTEAD}")
    for place, character in enumerate(name):
        if (kind := _REFUSED.get(unicodedata.category(character))) is not None:
            raise InputError(f"campaign has a {kind} (U+{ord(character):04X}) at place {place + 1}. {_INSTEAD}")
    return name


def given_name_in(store: LedgerBackend, given: str) -> str:
    """Return what a ledger calls the campaign of a given name: as it is written, where it has that already.

    :raises InputError: the name is none.
    :raises LedgerError: when the ledger cannot be read.
    """
    name = read_name(given)
    if name == given:
        return name
    with store.read() as connection:
        return name if _campaign_id(connection, given) is None else given


def default_name_in(store: LedgerBackend, who: Claimant) -> str:
    """Return what a ledger calls the campaign of a task and a DAG run.

    It was ``{dag_id}.{task_id}.{run_id}`` once. A task that has sent anything under that name goes on there. One that
    finds only requests of other tasks takes its own: two tasks could have that name.

    :raises LedgerError: when the ledger cannot be read.
    """
    former = f"{who.dag_id}.{who.task_id}.{who.run_id}"
    with store.read() as connection:
        its = _campaign_id(connection, former)
        if its is None:
            return default_name(who)
        requests = select(request.c.id).where(request.c.campaign_id == its).limit(1)
        own = requests.select_from(request.join(claimant)).where(of_run(who))
        if connection.execute(own).scalar() is not None:
            return former
        # It may have asked for approval there, or be paused.
        noted = and_(progress.c.campaign_id == its, of_run(who))
        query = select(progress.c.claimant_id).select_from(progress.join(claimant)).where(noted).limit(1)
        is_its_own = connection.execute(requests).scalar() is None and connection.execute(query).scalar() is not None
        return former if is_its_own else default_name(who)


def _campaign_id(connection: Connection, name: str) -> int | None:
    found: int | None = connection.execute(select(campaign.c.id).where(campaign.c.name == name)).scalar()
    return found
