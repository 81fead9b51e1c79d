"""How a request goes from one state to the next, each within a transaction of the caller's.

Only this module decides when a claim has *lapsed*: past its deadline it counts as unknown, for every process, whether
that is written down or not. For a while its process may still record the outcome.
"""

from __future__ import annotations

from collections import Counter
from decimal import Context
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, case, delete, insert, or_, select, update

from airflow_provider_sms.ledger.backend import Compiled
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, LAPSED, NOT_SENT, UNKNOWN, TextedTwice
from airflow_provider_sms.ledger.schema import former_holder, message, request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Outcome

REPEATED_EVENT = "the response has the event id of an earlier one of the campaign, so it belongs to another request"
"""The reason of a request whose response cannot be the one to it."""


def repeated_events(events: Mapping[int, int | None]) -> set[int]:
    """Return the requests whose event id an earlier one of them has.

    :param events: the event id of each request, in the order of their responses; None where there is none.
    """
    first: dict[int, int] = {}
    return {
        request_id
        for request_id, event_id in events.items()
        if event_id is not None and first.setdefault(event_id, request_id) != request_id
    }


def _is_lapsed(state: Any, deadline: Any, now: float) -> Any:
    """Return whether a claim has lapsed: for values as a bool, for columns as an expression."""
    return (state == CLAIMED) & (deadline < now)


PATIENCE_SECONDS = 300.0
"""Seconds for which a process that cannot write to the ledger tries to record its outcomes, unless the configuration
says otherwise; others expect the outcome of a request for as long after its claim."""


def may_be_recorded(
    finished_at: float | None, claimed_at: float, deadline: float, *, now: float, seconds: float
) -> bool:
    """Return whether an outcome may still be recorded for a request that another process makes.

    Past the deadline nothing more is posted, but the process may have a response, and be cut off from the ledger.

    :param finished_at: when its outcome was recorded; None while there is none.
    :param now: seconds since the epoch.
    :param seconds: how long after its claim an outcome is expected, at least until its deadline.
    """
    return finished_at is None and now <= max(deadline, claimed_at + seconds)


def current_state(state: str, deadline: float, now: float) -> str:
    """Return the state of a request at a moment, from the values of its columns."""
    return UNKNOWN if _is_lapsed(state, deadline, now) else state


def state_at(now: float) -> ColumnElement[str]:
    """Return the expression for a request's state at a moment."""
    return case((lapsed(now), UNKNOWN), else_=request.c.state)


def reason_at(now: float) -> ColumnElement[str | None]:
    """Return the expression for the reason of a request's state at a moment."""
    return case((lapsed(now), LAPSED), else_=request.c.reason)


def lapsed(now: float) -> ColumnElement[bool]:
    """Return the condition for requests whose claim has lapsed."""
    condition: ColumnElement[bool] = _is_lapsed(request.c.state, request.c.deadline, now)
    return condition


def under_way(now: float) -> ColumnElement[bool]:
    """Return the condition for requests whose process may still post them or record their outcome."""
    return and_(request.c.state == CLAIMED, ~lapsed(now))


def lapse(connection: Connection, which: ColumnElement[bool], now: float) -> None:
    """Record as unknown the requests whose claim has lapsed.

    :param which: the condition for the requests that are looked at.
    :param now: seconds since the epoch.
    """
    connection.execute(update(request).where(which, lapsed(now)).values(state=UNKNOWN, reason=LAPSED))


_MAX = {"event_id": 2**63 - 1, "messages": 2**31 - 1, "parts": 2**31 - 1}
"""The largest number that each column holds."""
_MAX_COST_LENGTH = 40
_ROUNDED = Context(prec=30)

RECORDED = (
    "state", "finished_at", "http_status", "event_id", "messages", "parts", "cost", "reason", "response",
)  # fmt: skip
"""The columns that an outcome fills in, in the order in which statements name them."""
_OPEN = {"claimed": CLAIMED, "unknown": UNKNOWN}
_IS_OPEN = or_(request.c.state == bindparam("claimed"), request.c.state == bindparam("unknown"))


def _recording(condition: ColumnElement[bool]) -> Compiled:
    this = and_(request.c.id == bindparam("of"), condition)
    values: dict[str, Any] = {name: bindparam(name) for name in RECORDED}
    return Compiled(update(request).where(this).values(values))


_RECORD = _recording(_IS_OPEN)
RECORD_RESPONSE = _recording(or_(_IS_OPEN, request.c.response.is_(None)))
"""Records a response of the service. It replaces any outcome without a response, even a person's decision."""


def record(connection: Connection, outcome: Outcome, now: float) -> None:
    """Record that a request is unknown or was not sent; no-op where it has a better-founded outcome.

    :param now: seconds since the epoch.
    """
    recorded = _RECORD.run(connection, values_of(outcome, now))
    if outcome.state == NOT_SENT and recorded.rowcount == 1:
        release(connection, outcome.request_id)


def values_of(outcome: Outcome, now: float) -> dict[str, Any]:
    """Return the values of a statement that records an outcome, by name.

    :param now: seconds since the epoch.
    """
    return {
        **_OPEN,
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
    """Free a request's messages: delete them, or hand those that were taken over back to an earlier request.

    Of the earlier requests that may have been sent, an accepted one comes first, then the latest.
    """
    which = message.c.request_id == request_id
    taken = connection.execute(
        select(message.c.campaign_id, message.c.message_key).where(which, message.c.taken_from.is_not(None))
    ).all()
    for campaign_id, key in taken:
        formers = and_(former_holder.c.campaign_id == campaign_id, former_holder.c.message_key == key)
        states = dict(
            connection.execute(
                select(request.c.id, request.c.state)
                .select_from(former_holder.join(request, request.c.id == former_holder.c.request_id))
                .where(formers, request.c.state != NOT_SENT)
            ).all()
        )
        connection.execute(delete(former_holder).where(formers))
        if not states:
            continue
        holder = max(states, key=lambda each: (states[each] == ACCEPTED, each))
        others = sorted(states.keys() - {holder})
        this = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
        before = others[-1] if others else None
        connection.execute(update(message).where(this).values(request_id=holder, taken_from=before))
        if others:
            rows = [{"campaign_id": campaign_id, "message_key": key, "request_id": each} for each in others]
            connection.execute(insert(former_holder), rows)
    connection.execute(delete(message).where(which))


def take_over(connection: Connection, campaign_id: int, key: bytes, unknown_id: int, request_id: int) -> None:
    """Move a message from a request that is unknown to a new one; no-op where anything has changed meanwhile."""
    still_unknown = select(request.c.id).where(request.c.id == unknown_id, request.c.state == UNKNOWN)
    this = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
    moved = connection.execute(
        update(message)
        .where(this, message.c.request_id.in_(still_unknown))
        .values(request_id=request_id, taken_from=unknown_id)
    )
    if moved.rowcount:
        connection.execute(
            insert(former_holder).values(campaign_id=campaign_id, message_key=key, request_id=unknown_id)
        )


def take_back(connection: Connection, request_id: int) -> None:
    """Hand a request that is accepted the messages that others took over from it.

    Their recipients are not texted again then, whatever becomes of the others. A message that another request was
    accepted with stays there.
    """
    rows = connection.execute(
        select(message.c.campaign_id, message.c.message_key, request.c.id)
        .select_from(
            former_holder.join(
                message,
                and_(
                    message.c.campaign_id == former_holder.c.campaign_id,
                    message.c.message_key == former_holder.c.message_key,
                ),
            ).join(request, request.c.id == message.c.request_id)
        )
        .where(
            former_holder.c.request_id == request_id, message.c.request_id != request_id, request.c.state != ACCEPTED
        )
    ).all()
    for campaign_id, key, holder in rows:
        hand_to(connection, campaign_id, key, request_id, holder)


def late_responses(outcomes: Iterable[Outcome], states: Mapping[int, str]) -> list[Outcome]:
    """Return the responses to requests that were closed before: by a person, or because their claim had lapsed.

    :param states: the states of the requests, before.
    """
    return [each for each in outcomes if each.state == ACCEPTED and states[each.request_id] in (NOT_SENT, UNKNOWN)]


def take_again(store: LedgerBackend, connection: Connection, campaign_id: int, outcome: Outcome) -> list[TextedTwice]:
    """Give a request with a late response its messages back, except those that another request was accepted with.

    :returns: how many of them each other request held: these people were texted twice, or may have been.
    """
    chunk = outcome.chunk
    if chunk is None:
        return []
    store.insert_messages(connection, campaign_id, [outcome.request_id], [chunk])
    others: Counter[tuple[int, bool]] = Counter()
    for key, holder, state, *_ in list(store.holders(connection, campaign_id, chunk.keys)):
        if holder != outcome.request_id:
            others[holder, state == ACCEPTED] += 1
            if state != ACCEPTED:
                hand_to(connection, campaign_id, bytes(key), outcome.request_id, holder)
    twice = [TextedTwice(outcome.request_id, *other, messages) for other, messages in sorted(others.items())]
    if twice:
        words = "; ".join(map(str, twice))
        connection.execute(update(request).where(request.c.id == outcome.request_id).values(reason=words))
    return twice


def hand_to(connection: Connection, campaign_id: int, key: bytes, request_id: int, holder: int) -> None:
    """Hand a message of one request to another one that was accepted with it; the former may have been sent, too."""
    this = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
    connection.execute(update(message).where(this).values(request_id=request_id, taken_from=holder))
    formers = and_(former_holder.c.campaign_id == campaign_id, former_holder.c.message_key == key)
    connection.execute(delete(former_holder).where(formers, former_holder.c.request_id.in_((request_id, holder))))
    connection.execute(insert(former_holder).values(campaign_id=campaign_id, message_key=key, request_id=holder))
