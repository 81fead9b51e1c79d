"""The requests of a campaign, and those of them that need somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from airflow_provider_sms.ledger import transitions
from airflow_provider_sms.ledger.account import kept_evidence
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.schema import attempt, message, request
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.reader import LedgerReader


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


def requests(
    ledger: LedgerReader, campaign_id: int, *, before: int | None = None, state: str | None = None, limit: int = 50
) -> list[RequestLine]:
    """Return requests of a campaign, newest first.

    :param before: return only requests made before this one; None means from the newest on.
    :param state: None means any.
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
                attempt.c.try_number,
            )
            .select_from(request.join(attempt))
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
    None: (ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN),
    ACCEPTED: (ACCEPTED,),
    CLAIMED: (CLAIMED,),
    NOT_SENT: (NOT_SENT,),
    SUPERSEDED: (SUPERSEDED,),
    # A lapsed claim is unknown.
    UNKNOWN: (CLAIMED, UNKNOWN),
}
"""States that the ledger may hold for a request, by the state that the request is in."""


def unknown_requests(ledger: LedgerReader, campaign_id: int) -> list[UnknownRequest]:
    """Return the unknown requests of a campaign, oldest first."""
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
        return [
            UnknownRequest(*row)._replace(evidence=kept_evidence(row.evidence)) for row in connection.execute(query)
        ]


def texted_twice(ledger: LedgerReader, campaign_id: int) -> list[str]:
    """Return sentences about requests that were accepted after others could claim their messages."""
    with ledger.read() as connection:
        return [f"Request {each.request_id}: {each}." for each in transitions.texted_twice(connection, campaign_id)]
