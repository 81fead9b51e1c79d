"""How a request goes from one state to the next, within a transaction of the caller's."""

from __future__ import annotations

from collections import Counter
from decimal import Context
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from airflow_provider_sms.ledger.compiled import Compiled
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import contact, former_holder, message, request

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.model import Outcome

LAPSED = "no outcome was recorded before the deadline: the sending process ended or lost its answer"

_MAX = {"event_id": 2**63 - 1, "messages": 2**31 - 1, "parts": 2**31 - 1}
"""The largest number that each column holds."""
_MAX_COST_LENGTH = 40
_ROUNDED = Context(prec=30)


RECORDED = ("state", "finished_at", "http_status", "event_id", "messages", "parts", "cost", "reason", "response")
_OPEN = {"claimed": CLAIMED, "unknown": UNKNOWN}
_IS_OPEN = or_(request.c.state == bindparam("claimed"), request.c.state == bindparam("unknown"))


def _recording(condition: ColumnElement[bool]) -> Compiled:
    this = and_(request.c.id == bindparam("of"), condition)
    return Compiled(update(request).where(this).values({name: bindparam(name) for name in RECORDED}))


_RECORD = _recording(_IS_OPEN)
RECORD_ANSWER = _recording(or_(_IS_OPEN, request.c.response.is_(None)))


def record(connection: Connection, outcome: Outcome, now: float, groups: Collection[int]) -> None:
    """Record what became of a request; no-op where it has an outcome that is better founded.

    An answer of the service is better founded than anything, also than what a person said before it came.

    :param now: seconds since the epoch.
    :param groups: in which it has contacts, and whose locks are held; needed for one that was not sent.
    """
    statement = RECORD_ANSWER if outcome.state == ACCEPTED else _RECORD
    recorded = statement.run(connection, values_of(outcome, now))
    if outcome.state == NOT_SENT and recorded.rowcount == 1:
        release(connection, outcome.request_id, groups)


def values_of(outcome: Outcome, now: float) -> dict[str, Any]:
    """Give the values of a statement that records an outcome, by name.

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


def release(connection: Connection, request_id: int, groups: Collection[int]) -> None:
    """Free a request's messages; those that an unknown request held before are unknown again.

    :param groups: in which it has contacts, and whose locks are held.
    """
    if groups:
        # First: whom an unknown request may have texted is found by the messages that go back to it.
        _give_back_contacts(connection, request_id, groups)
    its = message.c.request_id == request_id
    give_back(connection, its)
    connection.execute(delete(message).where(its))


def take_over(connection: Connection, campaign_id: int, key: bytes, unknown_id: int, request_id: int) -> None:
    """Move a message from a request that is unknown to a new one; no-op where anything has changed meanwhile."""
    still_unknown = select(request.c.id).where(request.c.id == unknown_id, request.c.state == UNKNOWN)
    its = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
    moved = connection.execute(
        update(message)
        .where(its, message.c.request_id.in_(still_unknown))
        .values(request_id=request_id, taken_from=unknown_id)
    )
    if moved.rowcount:
        connection.execute(
            insert(former_holder).values(campaign_id=campaign_id, message_key=key, request_id=unknown_id)
        )


def give_back(connection: Connection, which: ColumnElement[bool]) -> None:
    """Hand messages that were taken over back to a request that had them before and may have been sent.

    An accepted one comes first, then the latest. What no such request had stays where it is.

    :param which: the messages.
    """
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
        its = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
        before = others[-1] if others else None
        connection.execute(update(message).where(its).values(request_id=holder, taken_from=before))
        if others:
            rows = [{"campaign_id": campaign_id, "message_key": key, "request_id": each} for each in others]
            connection.execute(insert(former_holder), rows)


def take_back(connection: Connection, request_id: int) -> dict[int, Counter[str]]:
    """Let a request that is accepted have the messages that others took over from it.

    Nobody is texted again then, whatever becomes of the others. A message that another request was accepted with stays
    there.

    :returns: the requests that have or had these messages, each with how many it has by its state.
    """
    found: dict[int, Counter[str]] = {}
    rows = connection.execute(
        select(message.c.campaign_id, message.c.message_key, request.c.id, request.c.state)
        .select_from(
            former_holder.join(
                message,
                and_(
                    message.c.campaign_id == former_holder.c.campaign_id,
                    message.c.message_key == former_holder.c.message_key,
                ),
            ).join(request, request.c.id == message.c.request_id)
        )
        .where(former_holder.c.request_id == request_id, message.c.request_id != request_id)
    ).all()
    for campaign_id, key, holder, state in rows:
        found.setdefault(holder, Counter())[state] += 1
        if state != ACCEPTED:
            hand_to(connection, campaign_id, key, request_id, holder)
    return found


def hand_to(connection: Connection, campaign_id: int, key: bytes, request_id: int, holder: int) -> None:
    """Hand a message of one request to another one that was accepted with it; the former may have been sent, too."""
    its = and_(message.c.campaign_id == campaign_id, message.c.message_key == key)
    connection.execute(update(message).where(its).values(request_id=request_id, taken_from=holder))
    formers = and_(former_holder.c.campaign_id == campaign_id, former_holder.c.message_key == key)
    connection.execute(delete(former_holder).where(formers, former_holder.c.request_id.in_((request_id, holder))))
    connection.execute(insert(former_holder).values(campaign_id=campaign_id, message_key=key, request_id=holder))


def _give_back_contacts(connection: Connection, request_id: int, groups: Collection[int]) -> None:
    """Have whoever a request did not text be as they were: texted by an earlier one, or by none."""
    before, unknown = request.alias(), request.alias()
    is_theirs = and_(message.c.request_id == contact.c.request_id, message.c.destination == contact.c.destination)
    its = and_(contact.c.request_id == request_id, contact.c.group_id.in_(groups))
    rows = connection.execute(
        select(
            contact.c.group_id,
            contact.c.destination,
            before.c.claimed_at,
            before.c.id,
            unknown.c.claimed_at,
            unknown.c.id,
        )
        .select_from(
            contact.outerjoin(before, and_(before.c.id == contact.c.before_request_id, before.c.state != NOT_SENT))
            .outerjoin(message, is_theirs)
            .outerjoin(unknown, and_(unknown.c.id == message.c.taken_from, unknown.c.state != NOT_SENT))
        )
        .where(its)
    ).all()
    connection.execute(delete(contact).where(its))
    # By person: a request that was made without a cap may have several messages to one.
    given_back: dict[tuple[int, int], dict[str, Any]] = {}
    for group_id, destination, *earlier in rows:
        last, other = sorted([earlier[:2], earlier[2:]], key=lambda each: each[0] or 0.0, reverse=True)
        if last[1] is not None:
            given_back[group_id, destination] = {
                "group_id": group_id,
                "destination": destination,
                "claimed_at": last[0],
                "request_id": last[1],
                "before_at": other[0],
                "before_request_id": other[1],
            }
    if given_back:
        connection.execute(insert(contact), list(given_back.values()))


def lapse(connection: Connection, which: ColumnElement[bool], now: float) -> None:
    """Call claims unknown whose deadline has passed.

    A claim of a time that is still to come was made by a clock that ran ahead: it counts as made now. Its process may
    live, so it is not unknown yet, and nobody waits for it longer than for any other claim.

    :param which: the requests to look at.
    :param now: seconds since the epoch.
    """
    ahead = and_(which, request.c.state == CLAIMED, request.c.claimed_at > now)
    length = request.c.deadline - request.c.claimed_at
    connection.execute(update(request).where(ahead).values(claimed_at=now, deadline=now + length))
    lapsed = and_(which, request.c.state == CLAIMED, request.c.deadline < now)
    connection.execute(update(request).where(lapsed).values(state=UNKNOWN, reason=LAPSED))


def fitting_cost(cost: str) -> str:
    """Return a decimal number in at most the 40 characters of its column: rounded to 30 digits where it has more."""
    return cost if len(cost) <= _MAX_COST_LENGTH else str(_ROUNDED.create_decimal(cost))


def _fitting(number: int | None, most: int) -> int | None:
    """Drop a number that its column cannot hold: it must not cost the record of a send, and the response has it."""
    return None if number is None or not -most <= number <= most else number
