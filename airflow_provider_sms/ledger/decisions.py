"""What people decide about requests whose outcome is unknown, or what the balance proves, and who decided."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, update

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import BALANCE, CHARGED
from airflow_provider_sms.ledger.backend import campaign_lock, in_pieces
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.requests import named_requests, requests_among
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.ledger.transitions import REQUESTS_AT_ONCE, lapse, move, restore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import RequestState
    from airflow_provider_sms.ledger.requests import RequestRow


def resolve(store: LedgerBackend, request_id: int, state: str, who: str) -> int:
    """Close an unknown request by a person's decision.

    :param state: ``accepted``, or ``not_sent``, which frees its messages to be sent again.
    """
    (row,) = named_requests(store, [request_id])
    with store.write(campaign_lock(row.campaign)) as connection:
        return _close(connection, request_id, state, who, now=store.clock())


def close_by_balance(
    store: LedgerBackend, campaign_name: str, closed: Mapping[int, tuple[RequestState, KeptEvidence]]
) -> dict[int, int]:
    """Close unknown requests of a campaign as the balance decides, a few in each transaction.

    A request that has an outcome by then keeps it.

    :param closed: by request, ``accepted`` or ``not_sent``, and the evidence.
    :returns: the requests that it closed, each with the count of the messages that it holds or has freed.
    """
    done: dict[int, int] = {}

    def write(connection: Connection, some: Sequence[int]) -> None:
        for request_id in some:
            state, evidence = closed[request_id]
            with suppress(InputError):  # it has an outcome since, perhaps by a commit that nobody was told of
                done[request_id] = _close(connection, request_id, state, BALANCE, now=store.clock(), proof=evidence)

    for some in in_pieces(sorted(closed), REQUESTS_AT_ONCE):
        store.save(campaign_lock(campaign_name), partial(write, some=some))
    return done


def _close(
    connection: Connection, request_id: int, state: str, who: str, *, now: float, proof: KeptEvidence | None = None
) -> int:
    """Close an unknown request, and return how many messages it holds or frees.

    Of an accepted one, it states what the evidence of the balance tells: the sum, and the parts.

    :param proof: the balance's evidence, where it decides; None where a person does.
    """
    lapse(connection, request.c.id == request_id, now)
    if not (found := requests_among(connection, [request_id], now)):  # its campaign was purged meanwhile
        raise InputError(f"The ledger has no request {request_id} any more")
    (row,) = found
    require_unknown(row)
    evidence = proof or row.evidence
    values: dict[str, Any] = {"state": state, "decision": state, "decided_by": who, "decided_at": now}
    values["finished_at"] = func.coalesce(request.c.finished_at, request.c.claimed_at)
    if proof is not None:
        values |= {"reason": proof.words, "evidence": proof.written()}
    if state == ACCEPTED and evidence is not None and evidence.verdict == CHARGED:
        values |= {"cost": evidence.amount, "parts": request.c.planned_parts}
    connection.execute(update(request).where(request.c.id == request_id).values(values))
    if state == NOT_SENT:
        move(connection, request_id)
        of = select(request.c.campaign_id).where(request.c.id == request_id)
        restore(connection, connection.execute(of).scalar_one())
    return row.messages


def require_unknown(row: RequestRow) -> None:
    """Refuse to decide about a request that has an outcome, or may be under way."""
    if row.state == UNKNOWN:
        return
    if row.state == CLAIMED:
        until = datetime.fromtimestamp(row.deadline, timezone.utc)
        raise InputError(
            f"Request {row.request_id} may still be under way: its process can record what becomes of it until "
            f"{until:%Y-%m-%d %H:%M:%S} UTC. Try again then"
        )
    if row.state == SUPERSEDED:
        raise InputError(
            f"Request {row.request_id} is superseded: its messages are sent again, as the task's on_unknown says"
        )
    known = "accepted" if row.state == ACCEPTED else "not sent"
    raise InputError(f"Request {row.request_id} is not unknown: it is {known}")
