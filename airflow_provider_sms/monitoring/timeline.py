"""What happened in one campaign: over time, request by request, try by try, and what people decided."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Float as Real
from sqlalchemy import Integer, cast, func, or_, select

from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import claimant, decision, message, progress, request
from airflow_provider_sms.ledger.statistics import TAKEN
from airflow_provider_sms.ledger.transitions import reason_at, state_at
from airflow_provider_sms.monitoring.attempts import object_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader

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

    :param people: messages that it holds, at least one; of a send to groups that one, whoever is in them.
    :param kind: ``bulk`` or ``group``.
    """

    id: int
    people: int
    claimed_at: float
    reason: str | None
    kind: str


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
    with ledger.read() as connection:
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
        # The index has the requests of one state in their order: asked for all at once, SQLite would sort them all.
        lines = [
            RequestLine(*row) for each in written for row in connection.execute(query.where(request.c.state == each))
        ]
    return sorted(lines, key=lambda line: -line.id)[:limit]


_WRITTEN: dict[str | None, tuple[str, ...]] = {
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
    with ledger.read() as connection:
        now = ledger.clock()
        held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
        query = (
            select(request.c.id, held, request.c.claimed_at, reason_at(now), request.c.kind)
            .where(
                request.c.campaign_id == campaign_id, request.c.state.in_((CLAIMED, UNKNOWN)), state_at(now) == UNKNOWN
            )
            .order_by(request.c.id)
        )
        # What was sent anew is of another request by now.
        return [UnknownRequest(*row) for row in connection.execute(query) if row[1]]


def texted_twice(ledger: LedgerReader, campaign_id: int) -> list[str]:
    """Return what the ledger says of requests that were accepted after a person had freed their messages.

    :raises SmsError: the ledger cannot be read.
    """
    query = (
        select(request.c.id, request.c.reason)
        .select_from(decision.join(request, request.c.id == decision.c.request_id))
        .where(request.c.campaign_id == campaign_id, request.c.state == ACCEPTED, request.c.reason.is_not(None))
        .order_by(request.c.id)
        .distinct()
    )
    with ledger.read() as connection:
        return [f"Request {request_id}: {reason}." for request_id, reason in connection.execute(query)]


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
