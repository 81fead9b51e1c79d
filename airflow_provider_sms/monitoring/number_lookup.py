"""Looking up when one number was texted, and by which requests.

There is no index of numbers, which would make every claim slower. So a look-up reads messages, the newest campaigns
first, for a bounded time, and says how far back it looked; the next one can go on from there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from sqlalchemy import and_, func, select

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.backend import IDS_AT_ONCE, in_pieces
from airflow_provider_sms.ledger.request_queries import RequestRow, count_messages_to, requests_to
from airflow_provider_sms.ledger.schema import campaign, message, request
from airflow_provider_sms.monitoring.campaigns import newest_first, place_above, visible_ids
from airflow_provider_sms.recipients.numbers import clean_destinations

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.reader import LedgerReader

SECONDS = 1.0
"""Seconds after which a look-up begins no further piece."""
PIECE_REQUESTS = 1_000
"""Requests whose messages are read at a time, up to 100,000 messages: some tenths of a second."""
_FIRST_BYTES = 256


class NumberMatch(NamedTuple):
    """A request that texted a number, or may have.

    :param campaign_id: of its campaign, for a link.
    """

    campaign_id: int
    request: RequestRow


class Position(NamedTuple):
    """A place from which a look-up goes on, to older campaigns.

    :param campaign_id: the campaign with which it begins; there need not be one of this id.
    :param first_byte: the first byte of the keys with which it begins in this campaign.
    """

    campaign_id: int
    first_byte: int = 0


class LookUp(NamedTuple):
    """What a look-up found.

    :param matches: the last request first.
    :param looked_back_to: when the oldest campaign that was read was created, seconds since the epoch; None if none was
        read. Campaigns that the reader may not see do not count: nothing tells when they were created.
    :param rest: where the messages begin that were not read; None means that all were read.
    """

    matches: Sequence[NumberMatch]
    looked_back_to: float | None
    rest: Position | None


class _Piece(NamedTuple):
    """Messages that are read at a time.

    :param created_at: of its oldest campaign; None means that the reader may see none of its campaigns.
    :param which: the condition for them; None means that there are none.
    """

    position: Position
    created_at: float | None
    which: ColumnElement[bool] | None


def parse_number(written: str, default_region: str | None) -> str:
    """Return the digits, with country code, of a number as a person writes it.

    :param default_region: country of a number without country code, such as ``ZA``; None means that it has one.
    :raises InputError: it cannot be read; the error gives the reason, without the number.
    """
    cleaned = clean_destinations(pa.array([written], pa.string()), default_region)
    digits = cleaned.digits[0].as_py()
    if digits is None:
        raise InputError(f"This number cannot be read: {cleaned.reasons[0].as_py()}")
    return str(digits)


def look_up_number(
    ledger: LedgerReader,
    written: str,
    default_region: str | None,
    *,
    may_see: Callable[[str], bool],
    start: Position | None = None,
    seconds: float = SECONDS,
) -> LookUp:
    """Return the requests that texted a number or may have, of campaigns that the reader may see.

    :param written: the number as a person writes it.
    :param default_region: as for :func:`parse_number`.
    :param may_see: returns whether the reader may see a DAG.
    :param start: where an earlier look-up ended; None means with the newest campaign.
    :param seconds: how long it reads; one piece is read however long that takes.
    :raises InputError: it is not a number that can be texted.
    :raises SmsError: the ledger cannot be read.
    """
    digits = parse_number(written, default_region)
    give_up = time.monotonic() + seconds
    looked_back_to, rest = None, None
    counts: Counter[int] | None = None
    with ledger.read() as connection:
        for number, piece in enumerate(_pieces(connection, may_see, start)):
            if number and time.monotonic() > give_up:
                rest = piece.position
                break
            if piece.which is not None:
                found = count_messages_to(connection, digits, piece.which)
                counts = found if counts is None else counts + found
                looked_back_to = piece.created_at
        rows = requests_to(connection, counts or {}, ledger.clock())
        named = select(campaign.c.name, campaign.c.id).where(campaign.c.name.in_({row.campaign for row in rows}))
        ids = {name: number for name, number in connection.execute(named)}  # noqa: C416  # rows are no pairs to dict()
    return LookUp([NumberMatch(ids[row.campaign], row) for row in reversed(rows)], looked_back_to, rest)


def _pieces(connection: Connection, may_see: Callable[[str], bool], start: Position | None) -> Iterator[_Piece]:
    above = float("inf") if start is None else start.campaign_id
    for rows in newest_first(connection, start.campaign_id + 1 if start else None):
        visible = visible_ids(connection, [row.id for row in rows], may_see)
        sizes = _requests(connection, sorted(visible))
        together: list[Any] = []
        total = 0
        for row in (each for each in rows if each.id in visible):
            size = sizes.get(row.id, 0)
            total += size
            if together and (total > PIECE_REQUESTS or len(together) >= IDS_AT_ONCE):
                yield _whole(together)
                together, total = [], size
            if size > PIECE_REQUESTS:
                yield from _split(row, size, start.first_byte if start and row.id == start.campaign_id else 0)
                total = 0
            else:
                together.append(row)
        if together:
            yield _whole(together)
        if visible:
            above = min(visible)
        else:
            # Finding that out takes time as well, and may be where a look-up stops.
            yield _Piece(Position(int(min(place_above(rows[0].id), above - 1))), None, None)


def _whole(rows: Sequence[Any]) -> _Piece:
    which = message.c.campaign_id.in_([row.id for row in rows])
    return _Piece(Position(rows[0].id), rows[-1].created_at, which)


def _split(row: Any, size: int, first_byte: int) -> Iterator[_Piece]:
    """Yield the pieces of a large campaign: the first bytes of its keys, which are hashes, are spread evenly."""
    step = max(1, _FIRST_BYTES * PIECE_REQUESTS // size)
    for low in range(first_byte, _FIRST_BYTES, step):
        which = and_(message.c.campaign_id == row.id, message.c.message_key >= bytes([low]))
        if low + step < _FIRST_BYTES:
            which = and_(which, message.c.message_key < bytes([low + step]))
        yield _Piece(Position(row.id, low), row.created_at, which)


def _requests(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """Return the number of requests of each campaign."""
    found: dict[int, int] = {}
    for piece in in_pieces(ids):
        query = select(request.c.campaign_id, func.count()).where(request.c.campaign_id.in_(piece))
        found.update(map(tuple, connection.execute(query.group_by(request.c.campaign_id))))
    return found
