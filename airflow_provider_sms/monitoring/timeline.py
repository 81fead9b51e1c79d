"""One campaign over time, and request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Float as Real
from sqlalchemy import Integer, cast, func, select

from airflow_provider_sms.ledger.account_history import kept_evidence
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import claimant, decision, message, request
from airflow_provider_sms.ledger.statistics import TAKEN
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.reader import LedgerReader

BUCKET_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800)
"""Widths that a bucket may have, in seconds: times that people find round."""


class TimelineBucket(NamedTuple):
    """Messages and cost within an interval of the timeline.

    :param begin: seconds since the epoch.
    :param messages: taken by the service.
    :param cost: in credits, to the precision of a float.
    """

    begin: float
    messages: int
    cost: float


class RequestLine(NamedTuple):
    """A request. Times are seconds since the epoch.

    :param event_id: 64 bits: write it as text where a reader may take numbers for floats.
    :param reason: why it is unknown or was not sent; None means not recorded.
    """

    id: int
    state: str
    submitted: int
    claimed_at: float
    finished_at: float | None
    http_status: int | None
    event_id: int | None
    parts: int | None
    cost: str | None
    reason: str | None
    try_number: int


class UnknownRequest(NamedTuple):
    """A request whose outcome is unknown.

    :param people: messages that it holds, at least one; always one for a send to groups, however many people are in
        them.
    :param kind: ``bulk`` or ``group``.
    :param evidence: what the balance tells of it; None where that was not judged.
    """

    id: int
    people: int
    claimed_at: float
    reason: str | None
    kind: str
    evidence: KeptEvidence | None = None


def timeline(ledger: LedgerReader, campaign_id: int, *, max_buckets: int = 60) -> tuple[int, list[TimelineBucket]]:
    """Return accepted messages over time.

    :returns: seconds of each bucket, and the buckets from the first to the last message, with empty ones in between.
    :raises SmsError: the ledger cannot be read.
    """
    accepted = (request.c.campaign_id == campaign_id, request.c.state == ACCEPTED, request.c.finished_at.is_not(None))
    with ledger.read() as connection:
        # A cast truncates in SQLite and rounds in PostgreSQL.
        ended = request.c.finished_at if connection.dialect.name == "sqlite" else func.floor(request.c.finished_at)
        # By seconds, although the buckets may be wider: their width is known only once all requests have been read.
        second = cast(ended, Integer)
        query = select(second, func.sum(TAKEN), func.sum(cast(request.c.cost, Real))).where(*accepted).group_by(second)
        seconds = [(each, int(messages or 0), float(cost or 0)) for each, messages, cost in connection.execute(query)]
    if not seconds:
        return BUCKET_SECONDS[0], []
    first, last = min(seconds)[0], max(seconds)[0]
    width = next((each for each in BUCKET_SECONDS if (last - first) / each < max_buckets - 1), BUCKET_SECONDS[-1])
    begins = range(first // width * width, last + 1, width)
    buckets = {begin: TimelineBucket(float(begin), 0, 0.0) for begin in begins}
    for each, messages, cost in seconds:
        begin = each // width * width
        before = buckets[begin]
        buckets[begin] = TimelineBucket(before.begin, before.messages + messages, before.cost + cost)
    return width, list(buckets.values())


def requests(
    ledger: LedgerReader, campaign_id: int, *, before: int | None = None, state: str | None = None, limit: int = 50
) -> list[RequestLine]:
    """Return requests of a campaign, newest first.

    :param before: return only requests made before this one; None means from the newest on.
    :param state: ``accepted``, ``unknown``, ``claimed`` or ``not_sent``; None means any.
    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        current = state_at(now)
        query = (
            select(
                request.c.id,
                current,
                request.c.submitted,
                request.c.claimed_at,
                request.c.finished_at,
                request.c.http_status,
                request.c.event_id,
                request.c.parts,
                request.c.cost,
                reason_at(now),
                claimant.c.try_number,
            )
            .select_from(request.join(claimant))
            .where(request.c.campaign_id == campaign_id)
            .order_by(request.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            query = query.where(request.c.id < before)
        if state is not None:
            query = query.where(current == state)
        stored = _STORED_STATES.get(state, ())
        # One query for each state: the index holds the requests of one state in order, and SQLite would sort all of
        # a query for several.
        lines = [
            RequestLine(*row) for each in stored for row in connection.execute(query.where(request.c.state == each))
        ]
    return sorted(lines, key=lambda line: -line.id)[:limit]


_STORED_STATES: dict[str | None, tuple[str, ...]] = {
    None: (ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN),
    ACCEPTED: (ACCEPTED,),
    CLAIMED: (CLAIMED,),
    NOT_SENT: (NOT_SENT,),
    # A lapsed claim is unknown.
    UNKNOWN: (CLAIMED, UNKNOWN),
}
"""States that the ledger may hold for a request, by the state that the request is in."""


def unknown_requests(ledger: LedgerReader, campaign_id: int) -> list[UnknownRequest]:
    """Return the unknown requests of a campaign that hold messages, oldest first.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        now = ledger.clock()
        held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
        query = (
            select(request.c.id, held, request.c.claimed_at, reason_at(now), request.c.kind, request.c.evidence)
            .where(
                request.c.campaign_id == campaign_id, request.c.state.in_((CLAIMED, UNKNOWN)), state_at(now) == UNKNOWN
            )
            .order_by(request.c.id)
        )
        # Messages that were sent again belong to another request by now.
        return [
            UnknownRequest(*row)._replace(evidence=kept_evidence(row.evidence))
            for row in connection.execute(query)
            if row[1]
        ]


def texted_twice(ledger: LedgerReader, campaign_id: int) -> list[str]:
    """Return sentences about requests that were accepted after a person, or the balance, had freed their messages.

    :raises SmsError: the ledger cannot be read.
    """
    # A request that a decision made accepted has the reason why it was unknown, or what the balance told.
    decided = select(decision.c.request_id)
    query = (
        select(request.c.id, request.c.reason)
        .where(request.c.id.in_(decided), request.c.id.not_in(decided.where(decision.c.decision == ACCEPTED)))
        # Not by the index of campaigns, which has every accepted request of this one: decisions are few.
        .where(request.c.campaign_id + 0 == campaign_id, request.c.state == ACCEPTED, request.c.reason.is_not(None))
        .order_by(request.c.id)
    )
    with ledger.read() as connection:
        return [f"Request {request_id}: {reason}." for request_id, reason in connection.execute(query)]
