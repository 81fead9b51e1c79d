"""What the ledger knows of the requests that hold a block of rows, for the row-level report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import case, select

from airflow_provider_sms.sending.claims import CLAIMED
from airflow_provider_sms.sending.schema import claimant, message, request

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

_IDS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request, as recorded.

    :param state: ``claimed``, ``accepted``, ``unknown`` or ``not_sent``.
    :param mine: whether this try made it.
    :param lapsed: whether it is claimed, and its deadline has passed.
    :param submitted: messages that were to be posted.
    :param messages: of these, how many the service took; None where it did not say.
    :param claimed_at: seconds since the epoch.
    :param finished_at: when its outcome was recorded, seconds since the epoch; None while there is none.
    :param response: the answer as received, JSON, where it took fewer than were submitted; else None.
    :param destinations: those of its messages, where it took fewer than were submitted; else none.
    """

    request_id: int
    state: str
    mine: bool
    lapsed: bool
    submitted: int
    messages: int | None
    claimed_at: float
    finished_at: float | None
    event_id: int | None
    reason: str | None
    response: str | None
    destinations: Sequence[int | None] = ()


def read_records(
    connection: Connection, ids: Collection[int], mine: ColumnElement[bool], now: float
) -> list[RequestRecord]:
    """Read what is recorded of requests.

    :param mine: the condition for claimants that are this try.
    :param now: seconds since the epoch, by the ledger's clock.
    """
    ordered = sorted(ids)
    parts = (ordered[start : start + _IDS_AT_ONCE] for start in range(0, len(ordered), _IDS_AT_ONCE))
    return [record for part in parts for record in _read(connection, part, mine, now)]


def _read(connection: Connection, ids: Sequence[int], mine: ColumnElement[bool], now: float) -> Iterator[RequestRecord]:
    left_some_out = request.c.messages < request.c.submitted
    query = (
        select(
            request.c.id,
            request.c.state,
            mine.label("mine"),
            request.c.deadline,
            request.c.submitted,
            request.c.messages,
            request.c.claimed_at,
            request.c.finished_at,
            request.c.event_id,
            request.c.reason,
            case((left_some_out, request.c.response)).label("response"),
        )
        .select_from(request.join(claimant))
        .where(request.c.id.in_(ids))
    )
    rows = connection.execute(query).all()
    destinations = _destinations(connection, [row.id for row in rows if row.response is not None])
    for row in rows:
        yield RequestRecord(
            request_id=row.id,
            state=row.state,
            mine=bool(row.mine),
            lapsed=row.state == CLAIMED and row.deadline < now,
            submitted=row.submitted,
            messages=row.messages,
            claimed_at=row.claimed_at,
            finished_at=row.finished_at,
            event_id=row.event_id,
            reason=row.reason,
            response=row.response,
            destinations=destinations.get(row.id, ()),
        )


def _destinations(connection: Connection, ids: Sequence[int]) -> dict[int, list[int | None]]:
    found: defaultdict[int, list[int | None]] = defaultdict(list)
    if ids:
        query = select(message.c.request_id, message.c.destination).where(message.c.request_id.in_(ids))
        for request_id, destination in connection.execute(query):
            found[request_id].append(destination)
    return found
