"""What people decide about requests whose outcome is unknown, or what the balance proves, and who decided."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, update

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import BALANCE, CHARGED, kept_evidence
from airflow_provider_sms.ledger.backend import campaign_lock, in_pieces
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.schema import campaign, message, request
from airflow_provider_sms.ledger.transitions import current_state, lapse, move, restore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import RequestState


REQUESTS_AT_ONCE = 20
"""Requests closed in one transaction, up to 2,000 messages: a send of the campaign waits for a fraction of a second."""

_NO_PROOF: Mapping[str, str] = MappingProxyType({})


def resolve(store: LedgerBackend, request_id: int, state: str, who: str) -> int:
    """Close an unknown request by a person's decision.

    :param state: ``accepted``, or ``not_sent``, which frees its messages to be sent again.
    :returns: how many messages the decision concerned.
    :raises InputError: there is no such request, or it is not unknown.
    """
    if not 0 < request_id < 2**63:
        raise InputError(f"The ledger has no request {request_id}")
    with store.read() as connection:
        name: str | None = connection.execute(
            select(campaign.c.name).select_from(request.join(campaign)).where(request.c.id == request_id)
        ).scalar()
    if name is None:
        raise InputError(f"The ledger has no request {request_id}")
    with store.write(campaign_lock(name)) as connection:
        return _close(connection, request_id, state, who, now=store.clock())


def close_by_balance(
    store: LedgerBackend, campaign_name: str, closed: Mapping[int, tuple[RequestState, KeptEvidence]]
) -> dict[int, int]:
    """Close unknown requests of a campaign as the balance decides, a few in each transaction.

    A request that has an outcome by then keeps it.

    :param closed: by request, ``accepted`` or ``not_sent``, and the evidence.
    :returns: the requests that it closed, each with the count of the messages that it holds or has freed.
    """

    def write(connection: Connection, some: Sequence[int]) -> dict[int, int]:
        held: dict[int, int] = {}
        for request_id in some:
            state, evidence = closed[request_id]
            proof = {"reason": evidence.words, "evidence": evidence.written()}
            with suppress(InputError):  # it has an outcome since
                held[request_id] = _close(connection, request_id, state, BALANCE, now=store.clock(), proof=proof)
        return held

    done: dict[int, int] = {}
    for some in in_pieces(sorted(closed), REQUESTS_AT_ONCE):
        done.update(store.save(campaign_lock(campaign_name), partial(write, some=some)))
    return done


def _close(
    connection: Connection,
    request_id: int,
    state: str,
    who: str,
    *,
    now: float,
    proof: Mapping[str, str] = _NO_PROOF,
) -> int:
    """Close an unknown request, and return how many messages it holds or frees.

    Of an accepted one, it states what the evidence of the balance tells: the sum, and the parts.

    :param proof: the balance's evidence and its words, where it decides; empty where a person does.
    :raises InputError: it is not unknown; then nothing has changed.
    """
    lapse(connection, request.c.id == request_id, now)
    written = (
        proof.get("evidence")
        or connection.execute(select(request.c.evidence).where(request.c.id == request_id)).scalar()
    )
    told = kept_evidence(written)
    sums: dict[str, Any] = {}
    if state == ACCEPTED and told is not None and told.verdict == CHARGED:
        sums = {"cost": told.amount, "parts": request.c.planned_parts}
    finished_at = func.coalesce(request.c.finished_at, request.c.claimed_at)
    decided = {"state": state, "decision": state, "decided_by": who, "decided_at": now, "finished_at": finished_at}
    this = update(request).where(request.c.id == request_id, request.c.state == UNKNOWN)
    settled = connection.execute(this.values(**decided, **proof, **sums))
    if settled.rowcount == 0:
        raise InputError(_not_unknown(connection, request_id))
    if state == NOT_SENT:
        held = move(connection, request_id)
        restore(
            connection, connection.execute(select(request.c.campaign_id).where(request.c.id == request_id)).scalar_one()
        )
    else:
        its = select(func.count()).select_from(message).where(message.c.request_id == request_id)
        held = connection.execute(its).scalar_one()
    return held


def _not_unknown(connection: Connection, request_id: int) -> str:
    row = connection.execute(select(request.c.state, request.c.deadline).where(request.c.id == request_id)).first()
    if row is None:  # its campaign was purged meanwhile
        return f"The ledger has no request {request_id} any more"
    state, deadline = row
    if state == CLAIMED:
        until = datetime.fromtimestamp(deadline, timezone.utc)
        return (
            f"Request {request_id} may still be under way: its process can record what becomes of it until "
            f"{until:%Y-%m-%d %H:%M:%S} UTC. Try again then"
        )
    if state == SUPERSEDED:
        return f"Request {request_id} is superseded: its messages are sent again, as the task's on_unknown says"
    known = "accepted" if state == ACCEPTED else "not sent"
    return f"Request {request_id} is not unknown: it is {known}"


def require_unknown(store: LedgerBackend, request_id: int) -> None:
    """Refuse a request that :func:`resolve` would refuse, before a person is asked.

    :raises InputError: it has an outcome, or may be under way.
    """
    with store.read() as connection:
        query = select(request.c.state, request.c.deadline).where(request.c.id == request_id)
        state, deadline = connection.execute(query).one()
        if current_state(state, deadline, store.clock()) != UNKNOWN:
            raise InputError(_not_unknown(connection, request_id))
