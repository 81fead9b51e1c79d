"""What happened in one campaign: over time, request by request, try by try, and what people decided."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Float as Real
from sqlalchemy import Integer, cast, func, or_, select

from airflow_provider_sms.overview.campaigns import TAKEN, object_of
from airflow_provider_sms.sending.claims import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.inquiry import reason_at, state_at
from airflow_provider_sms.sending.schema import approval, claimant, decision, message, pauses, progress, request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.overview.reader import LedgerReader

WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800)
"""Seconds that a stretch of time may have, so that people find them round."""


class Stretch(NamedTuple):
    """What was sent within a stretch of time.

    :param begin: seconds since the epoch.
    :param messages: taken by the service.
    :param cost: in credits, about.
    """

    begin: float
    messages: int
    cost: float


class RequestLine(NamedTuple):
    """A request. Times are seconds since the epoch.

    :param event_id: 64 bits: text wherever a reader may take numbers for floats.
    :param reason: why it is unknown or was not sent; None where it was not noted.
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
    """A request whose outcome nobody knows.

    :param people: messages that it holds.
    """

    id: int
    people: int
    claimed_at: float
    reason: str | None


class Deed(NamedTuple):
    """What a person did.

    :param what: ``approved``, ``refused``, ``was sent``, ``was not sent``, ``resend``, ``fail``, ``paused`` or
        ``resumed``.
    :param about: the request, or the plan; None where it is of the campaign.
    :param people: how many it concerned; None where that was not noted.
    """

    at: float
    who: str
    what: str
    about: str | None
    people: int | None


class TryLine(NamedTuple):
    """A try, or the part of one between two waits. Times are seconds since the epoch."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    started_at: float
    updated_at: float
    state: str


class Networks(NamedTuple):
    """What the service said of the networks and of messages that it left out, of all tries.

    :param lines: network, messages and cost in credits, the dearest first.
    :param errors: messages by what was wrong with them.
    :param told: messages of which a network is known.
    """

    lines: Sequence[tuple[str, int, Decimal]]
    errors: Sequence[tuple[str, int]]
    told: int


def timeline(ledger: LedgerReader, campaign_id: int, *, stretches: int = 60) -> tuple[int, list[Stretch]]:
    """Give the messages that were accepted, over time.

    :param stretches: how many at most.
    :returns: the seconds of each stretch, and those from the first to the last in which anything was, also the empty
        ones between.
    :raises SmsError: the ledger cannot be read.
    """
    its = (request.c.campaign_id == campaign_id, request.c.state == ACCEPTED, request.c.finished_at.is_not(None))
    with ledger.read() as connection:
        ends = select(func.min(request.c.finished_at), func.max(request.c.finished_at)).where(*its)
        first, last = connection.execute(ends).one()
        if first is None:
            return WIDTHS[0], []
        width = next((each for each in WIDTHS if (last - first) / each < stretches - 1), WIDTHS[-1])
        begin = first // width * width
        place = (request.c.finished_at - begin) / width
        # A cast cuts off in SQLite and rounds in PostgreSQL.
        whole = cast(place if connection.dialect.name == "sqlite" else func.floor(place), Integer)
        query = select(whole, func.sum(TAKEN), func.sum(cast(request.c.cost, Real))).where(*its).group_by(whole)
        found = {number: (int(messages or 0), float(cost or 0)) for number, messages, cost in connection.execute(query)}
    return width, [
        Stretch(begin + number * width, *found.get(number, (0, 0.0))) for number in range(max(found, default=-1) + 1)
    ]


def requests(
    ledger: LedgerReader, campaign_id: int, *, before: int | None = None, state: str | None = None, limit: int = 50
) -> list[RequestLine]:
    """Give requests of a campaign, newest first.

    :param before: only those made before this one; None: from the newest on.
    :param state: ``accepted``, ``unknown``, ``claimed`` or ``not_sent``; None: any.
    :raises SmsError: the ledger cannot be read.
    """
    now = ledger.clock()
    stands = state_at(now)
    query = (
        select(
            request.c.id,
            stands,
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
        query = query.where(stands == state)
    written = _WRITTEN.get(state, ())
    with ledger.read() as connection:
        # The index has the requests of one state in their order: asked for all at once, SQLite would sort them all.
        lines = [
            RequestLine(*row) for each in written for row in connection.execute(query.where(request.c.state == each))
        ]
    return sorted(lines, key=lambda line: -line.id)[:limit]


_WRITTEN = {
    None: (ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN),
    ACCEPTED: (ACCEPTED,),
    CLAIMED: (CLAIMED,),
    NOT_SENT: (NOT_SENT,),
    # A claim that nobody ended is unknown once it is past its deadline.
    UNKNOWN: (CLAIMED, UNKNOWN),
}
"""The states that are written down, by the state that a request is in."""


def unknown_requests(ledger: LedgerReader, campaign_id: int) -> list[UnknownRequest]:
    """Give the requests of a campaign whose outcome nobody knows, oldest first.

    :raises SmsError: the ledger cannot be read.
    """
    now = ledger.clock()
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    query = (
        select(request.c.id, held, request.c.claimed_at, reason_at(now))
        .where(request.c.campaign_id == campaign_id, request.c.state.in_((CLAIMED, UNKNOWN)), state_at(now) == UNKNOWN)
        .order_by(request.c.id)
    )
    with ledger.read() as connection:
        return [UnknownRequest(*row) for row in connection.execute(query)]


def deeds(ledger: LedgerReader, campaign_id: int, *, limit: int = 100) -> list[Deed]:
    """Give what people did, the last first: approvals, decisions about requests, pauses.

    :param limit: how many at most.
    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        found = [
            *_approvals(connection, campaign_id),
            *_decisions(connection, campaign_id, limit),
            *_pauses(connection, campaign_id),
        ]
    return sorted(found, key=lambda deed: -deed.at)[:limit]


def _approvals(connection: Connection, campaign_id: int) -> list[Deed]:
    its = approval.c.campaign_id == campaign_id
    rows = connection.execute(select(approval).where(its, approval.c.decision.is_not(None)))
    words = {"send": "approved", "stop": "refused"}
    return [
        Deed(row.decided_at, row.decided_by, words.get(row.decision, row.decision), f"plan {row.plan_id}", row.messages)
        for row in rows
    ]


def _decisions(connection: Connection, campaign_id: int, limit: int) -> list[Deed]:
    query = (
        select(decision.c.decided_at, decision.c.decided_by, decision.c.decision, request.c.id, request.c.submitted)
        .select_from(decision.join(request, request.c.id == decision.c.request_id))
        .where(request.c.campaign_id == campaign_id, decision.c.decided_by.is_not(None))
        .order_by(decision.c.decided_at.desc())
        .limit(limit)
    )
    words = {"accepted": "was sent", "not_sent": "was not sent"}
    return [
        Deed(at, who, words.get(said, said), f"request {of}", people)
        for at, who, said, of, people in connection.execute(query)
    ]


def _pauses(connection: Connection, campaign_id: int) -> list[Deed]:
    found: list[Deed] = []
    for row in connection.execute(select(pauses).where(pauses.c.campaign_id == campaign_id)):
        found.append(Deed(row.paused_at, row.paused_by, "paused", None, None))
        if row.resumed_at is not None:
            found.append(Deed(row.resumed_at, row.resumed_by, "resumed", None, None))
    return found


def tries(ledger: LedgerReader, campaign_id: int, *, limit: int = 50) -> list[TryLine]:
    """Give the tries that sent of a campaign, the last first.

    :param limit: how many at most.
    :raises SmsError: the ledger cannot be read.
    """
    query = (
        select(
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            claimant.c.try_number,
            claimant.c.started_at,
            progress.c.updated_at,
            progress.c.state,
        )
        .select_from(progress.join(claimant))
        .where(progress.c.campaign_id == campaign_id)
        .order_by(claimant.c.id.desc())
        .limit(limit)
    )
    with ledger.read() as connection:
        return [TryLine(*row) for row in connection.execute(query)]


def networks(ledger: LedgerReader, campaign_id: int) -> Networks:
    """Give what the service said of networks and errors, as the tries told it, each at its end or in between.

    :raises SmsError: the ledger cannot be read.
    """
    query = (
        select(
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            claimant.c.try_number,
            progress.c.figures,
        )
        .select_from(progress.join(claimant))
        .where(progress.c.campaign_id == campaign_id, or_(*(progress.c.figures.contains(name) for name in _TOLD)))
        .order_by(claimant.c.id)
    )
    with ledger.read() as connection:
        # What a try says after a wait covers what it sent before it.
        said = {tuple(whose): object_of(figures) for *whose, figures in connection.execute(query)}
    lines: dict[str, tuple[int, Decimal]] = {}
    errors: dict[str, int] = {}
    for figures in said.values():
        for network, line in figures.get("cost_breakdown", {}).items():
            quantity, cost = lines.get(network, (0, Decimal(0)))
            lines[network] = quantity + line["quantity"], cost + Decimal(str(line["cost"]))
        for name, count in figures.get("error_report", {}).items():
            errors[name] = errors.get(name, 0) + count
    dearest_first = sorted(((name, *line) for name, line in lines.items()), key=lambda line: (-line[2], line[0]))
    return Networks(
        dearest_first,
        sorted((name, count) for name, count in errors.items() if count),
        sum(quantity for quantity, _ in lines.values()),
    )


_TOLD = ("cost_breakdown", "error_report")
