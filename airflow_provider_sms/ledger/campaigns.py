"""The campaigns of a ledger, and their pauses: a paused campaign claims nothing more on any machine, and loses nothing.

A claim (:meth:`~airflow_provider_sms.ledger.claims.CampaignLedger.commit`) looks for a pause in its own transaction,
under the campaign's lock, which a pause takes, too. So once a campaign is paused, no claim of it follows; requests that
were claimed before are posted and recorded as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, bindparam, select, update

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.backend import Compiled, campaign_lock
from airflow_provider_sms.ledger.schema import campaign

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend


class Pause(NamedTuple):
    """A pause that holds."""

    paused_by: str
    paused_at: float


IS_PAUSED = and_(campaign.c.paused_at.is_not(None), campaign.c.resumed_at.is_(None))
"""The condition for campaigns that are paused."""
_PAUSE = Compiled(
    select(campaign.c.paused_by, campaign.c.paused_at).where(campaign.c.id == bindparam("of_campaign"), IS_PAUSED)
)


def find_campaign(connection: Connection, name: str) -> int | None:
    """Return a campaign's id; None where the ledger has no such campaign."""
    found: int | None = connection.execute(select(campaign.c.id).where(campaign.c.name == name)).scalar()
    return found


def require_campaign(connection: Connection, name: str) -> int:
    """Return a campaign's id."""
    if (found := find_campaign(connection, name)) is None:
        raise InputError(f"The ledger has no campaign {name!r}")
    return found


def open_pause(connection: Connection, campaign_id: int) -> Pause | None:
    """Return the pause that holds, within a transaction of the caller's; None where the campaign is not paused."""
    found = _PAUSE.run(connection, {"of_campaign": campaign_id}).first()
    return None if found is None else Pause(found.paused_by, found.paused_at)


def pause(store: LedgerBackend, campaign_name: str, who: str) -> Pause | None:
    """Pause a campaign: once this has returned, no process claims any of it.

    :returns: the pause that held before, which stays; None where the campaign was not paused.
    """
    with store.write(campaign_lock(campaign_name)) as connection:
        campaign_id = require_campaign(connection, campaign_name)
        before = open_pause(connection, campaign_id)
        if before is None:
            made = {"paused_by": who, "paused_at": store.clock(), "resumed_by": None, "resumed_at": None}
            connection.execute(update(campaign).where(campaign.c.id == campaign_id).values(made))
        return before


def resume(store: LedgerBackend, campaign_name: str, who: str) -> Pause | None:
    """End the pause of a campaign.

    :returns: the pause that ended; None where the campaign was not paused.
    """
    with store.write(campaign_lock(campaign_name)) as connection:
        campaign_id = require_campaign(connection, campaign_name)
        ended = open_pause(connection, campaign_id)
        held = and_(campaign.c.id == campaign_id, IS_PAUSED)
        connection.execute(update(campaign).where(held).values(resumed_by=who, resumed_at=store.clock()))
        return ended
