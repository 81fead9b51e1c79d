"""What people decide about requests whose outcome the software cannot know, and the record of who did."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select, update

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.sending.claims import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.schema import campaign, decision, message, request
from airflow_provider_sms.sending.store import campaign_lock
from airflow_provider_sms.sending.transitions import lapse, release

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.sending.store import Store


def resolve(store: Store, request_id: int, state: str, who: str) -> int:
    """Close a request that is unknown, because a person says what became of it.

    :param state: ``accepted``, or ``not_sent``: then its messages may be sent again.
    :param who: the person, for the record.
    :returns: how many messages it concerned.
    :raises InputError: there is no such request, or it is not unknown.
    :raises LedgerError: when it was not committed.
    """
    with store.read() as connection:
        name = connection.execute(
            select(campaign.c.name).select_from(request.join(campaign)).where(request.c.id == request_id)
        ).scalar()
    if name is None:
        raise InputError(f"The ledger has no request {request_id}")
    with store.write(campaign_lock(name)) as connection:
        now = store.clock()
        lapse(connection, request.c.id == request_id, now)
        held: int = connection.execute(
            select(func.count()).select_from(message).where(message.c.request_id == request_id)
        ).scalar_one()
        settled = connection.execute(
            update(request)
            .where(request.c.id == request_id, request.c.state == UNKNOWN)
            .values(state=state, finished_at=func.coalesce(request.c.finished_at, request.c.claimed_at))
        )
        if settled.rowcount == 0:
            raise InputError(_not_unknown(connection, request_id))
        if state == NOT_SENT:
            release(connection, request_id)
        connection.execute(
            insert(decision).values(request_id=request_id, decision=state, decided_by=who, decided_at=now)
        )
    return held


def _not_unknown(connection: Connection, request_id: int) -> str:
    state, deadline = connection.execute(
        select(request.c.state, request.c.deadline).where(request.c.id == request_id)
    ).one()
    if state == CLAIMED:
        until = datetime.fromtimestamp(deadline, timezone.utc)
        return (
            f"Request {request_id} may still be under way: its process can record what becomes of it until "
            f"{until:%Y-%m-%d %H:%M:%S} UTC. Try again then"
        )
    known = "accepted" if state == ACCEPTED else "not sent"
    return f"Request {request_id} is not unknown: it is {known}"
