"""How a request goes from one state to the next, each within a transaction of the caller's.

Only this module decides when a claim has *lapsed*: past its deadline it counts as unknown, for every process, whether
that is written down or not. For a while its process may still record the outcome.
"""

from __future__ import annotations

from decimal import Context
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, or_, select, update

from airflow_provider_sms.ledger.backend import Compiled
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, LAPSED, NOT_SENT, SUPERSEDED, UNKNOWN, TextedTwice
from airflow_provider_sms.ledger.schema import message, request, same_message, superseded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import BindParameter, ColumnElement

    from airflow_provider_sms.ledger.model import Outcome

REQUESTS_AT_ONCE = 20
"""Requests closed in one transaction, up to 2,000 messages: a send of the campaign waits for a fraction of a second."""


def may_be_recorded(finished_at: float | None, deadline: float, *, now: float, seconds: float) -> bool:
    """Return whether an outcome may still be recorded for a request that another process makes.

    Past the deadline nothing more is posted, but the process may have a response, and be cut off from the ledger.
    """
    return finished_at is None and now <= deadline + seconds


def state_at(now: float | BindParameter[float]) -> ColumnElement[str]:
    """Return the expression for a request's state at a moment."""
    return case((lapsed(now), UNKNOWN), else_=request.c.state)


def reason_at(now: float) -> ColumnElement[str | None]:
    """Return the expression for the reason of a request's state at a moment."""
    return case((lapsed(now), LAPSED), else_=request.c.reason)


def lapsed(now: float | BindParameter[float]) -> ColumnElement[bool]:
    """Return the condition for requests whose claim has lapsed."""
    return and_(request.c.state == CLAIMED, request.c.deadline < now)


def lapse(connection: Connection, which: ColumnElement[bool], now: float) -> None:
    """Record as unknown the requests whose claim has lapsed."""
    connection.execute(update(request).where(which, lapsed(now)).values(state=UNKNOWN, reason=LAPSED))


_MAX = {"event_id": 2**63 - 1, "messages": 2**31 - 1, "parts": 2**31 - 1}
"""The largest number that each column holds."""
_MAX_COST_LENGTH = 40
_ROUNDED = Context(prec=30)

RECORDED = (
    "state", "finished_at", "http_status", "event_id", "messages", "parts", "cost", "reason", "response",
)  # fmt: skip
"""The columns that an outcome fills in, in the order in which statements name them."""
_STATES = {"claimed": CLAIMED, "unknown": UNKNOWN, "accepted": ACCEPTED}
_IS_OPEN = or_(request.c.state == bindparam("claimed"), request.c.state == bindparam("unknown"))


def _recording(condition: ColumnElement[bool]) -> Compiled:
    this = and_(request.c.id == bindparam("of"), condition)
    values: dict[str, Any] = {name: bindparam(name) for name in RECORDED}
    return Compiled(update(request).where(this).values(values))


_RECORD_UNKNOWN = _recording(request.c.state == bindparam("claimed"))
_RECORD_NOT_SENT = _recording(request.c.state != bindparam("accepted"))
RECORD_RESPONSE = _recording(or_(_IS_OPEN, request.c.response.is_(None)))
"""Records a response of the service. It replaces any outcome without a response, even a person's decision."""


def record(connection: Connection, outcome: Outcome, now: float) -> None:
    """Record that a request is unknown or was not sent, where it has no better-founded outcome.

    Its poster alone knows that nothing was sent: so that holds even for a request that was superseded since. One that a
    person or the balance has called accepted stays so.
    """
    if outcome.state == NOT_SENT:
        if _RECORD_NOT_SENT.run(connection, values_of(outcome, now)).rowcount == 1:
            release(connection, outcome.request_id)
    else:
        _RECORD_UNKNOWN.run(connection, values_of(outcome, now))


def values_of(outcome: Outcome, now: float) -> dict[str, Any]:
    """Return the values of a statement that records an outcome, by name."""
    return {
        **_STATES,
        "of": outcome.request_id,
        "state": outcome.state,
        "finished_at": now,
        "http_status": outcome.http_status,
        **{name: _fitting(getattr(outcome, name), most) for name, most in _MAX.items()},
        "cost": None if outcome.cost is None else fitting_cost(outcome.cost),
        "reason": outcome.reason,
        "response": outcome.response,
    }


def fitting_cost(cost: str) -> str:
    """Return a decimal number in at most the 40 characters of its column: rounded to 30 digits where it has more."""
    return cost if len(cost) <= _MAX_COST_LENGTH else str(_ROUNDED.create_decimal(cost))


def _fitting(number: int | None, most: int) -> int | None:
    """Drop a number that its column cannot hold: it must not cost the record of a send; the response still has it."""
    return None if number is None or not -most <= number <= most else number


def release(connection: Connection, request_id: int) -> None:
    """Delete the messages of a request of which its poster knows that nothing was sent."""
    for table in (message, superseded):
        connection.execute(delete(table).where(table.c.request_id == request_id))


def move(connection: Connection, request_id: int) -> int:
    """Move the messages of a request to ``sms_superseded``, and return how many: they are free, and on record."""
    columns = ("campaign_id", "message_key", "request_id", "destination")
    held = select(*(message.c[name] for name in columns)).where(message.c.request_id == request_id)
    connection.execute(insert(superseded).from_select(columns, held))
    moved: int = connection.execute(delete(message).where(message.c.request_id == request_id)).rowcount
    return moved


def restore(connection: Connection, campaign_id: int) -> None:
    """Return to accepted requests what was moved from them, as far as it is free.

    So nobody whom an accepted request has texted is texted again, whatever became of the requests that came later.
    """
    same = same_message(message, superseded)
    here = superseded.c.campaign_id == campaign_id
    back = (
        select(
            superseded.c.campaign_id,
            superseded.c.message_key,
            func.min(superseded.c.request_id),
            func.max(superseded.c.destination),
        )
        .select_from(superseded.join(request, request.c.id == superseded.c.request_id))
        .where(here, request.c.state == ACCEPTED, ~select(message.c.request_id).where(same).exists())
        .group_by(superseded.c.campaign_id, superseded.c.message_key)
    )
    connection.execute(insert(message).from_select(("campaign_id", "message_key", "request_id", "destination"), back))
    its_own = select(message.c.request_id).where(same, message.c.request_id == superseded.c.request_id)
    connection.execute(delete(superseded).where(here, its_own.exists()))


def supersede(connection: Connection, campaign_id: int, request_ids: Sequence[int], now: float) -> int:
    """Let the messages of unknown requests be sent again, and return how many there are."""
    lapse(connection, request.c.id.in_(request_ids), now)
    freed = 0
    for request_id in request_ids:
        this = and_(request.c.id == request_id, request.c.state == UNKNOWN)
        if connection.execute(update(request).where(this).values(state=SUPERSEDED)).rowcount:
            freed += move(connection, request_id)
    restore(connection, campaign_id)
    return freed


def is_late(outcome: Outcome, state: str) -> bool:
    """Return whether a response came after its request was closed or superseded: others may have its messages."""
    return outcome.state == ACCEPTED and state in (NOT_SENT, SUPERSEDED)


def texted_twice(connection: Connection, campaign_id: int, claimants: Sequence[int] | None = None) -> list[TextedTwice]:
    """Return the messages of accepted requests that other requests hold, as far as either is of these claimants."""
    holder = request.alias("holder")
    same = same_message(message, superseded)
    query = (
        select(superseded.c.request_id, holder.c.id, holder.c.state == ACCEPTED, func.count())
        .select_from(
            superseded.join(request, request.c.id == superseded.c.request_id)
            .join(message, same)
            .join(holder, holder.c.id == message.c.request_id)
        )
        .where(superseded.c.campaign_id == campaign_id, request.c.state == ACCEPTED)
        .group_by(superseded.c.request_id, holder.c.id, holder.c.state)
        .order_by(superseded.c.request_id, holder.c.id)
    )
    if claimants is not None:
        query = query.where(or_(request.c.attempt_id.in_(claimants), holder.c.attempt_id.in_(claimants)))
    return [TextedTwice(one, other, bool(sure), count) for one, other, sure, count in connection.execute(query)]
