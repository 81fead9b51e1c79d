"""A full ledger, with thousands of campaigns and one of millions of messages, which the database writes on its own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, LargeBinary, String, and_, case, cast, create_engine, insert, literal, or_, select
from sqlalchemy.pool import NullPool

from airflow_provider_sms.ledger import schema
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from benchmarks.data import CHUNK, FIRST_NUMBER
from benchmarks.ledgers import execute
from benchmarks.service import ANSWER, FIRST_EVENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Table
    from sqlalchemy.engine import URL, Connection

TRIES = 3
"""Attempts of each campaign; the last one made the requests."""
REQUESTS = 10
"""Requests of each campaign; the large one has more."""
DAGS = 50
UNKNOWN_AT_ONCE = 32
"""Requests of the large campaign whose outcome is unknown, as after the death of a process."""
UNKNOWN_EVERY = 500
"""One campaign in this many has an unknown request, and another one has failed."""
AGE_SECONDS = 20 * 86_400.0
ROWS = REQUESTS * CHUNK
FIGURES = {"rows": ROWS, "suppressed": 0, "duplicate": 0, "cost_breakdown": {"Local": {"cost": 1.0, "quantity": ROWS}}}
RESPONSE = (ANSWER % {b"n": CHUNK, b"id": FIRST_EVENT}).decode()


def large_campaign(campaigns: int) -> int:
    """Return the id of the large campaign, which is on the first page of the list."""
    return campaigns - 5


def fill(url: URL, campaigns: int, messages: int) -> None:
    """Create a ledger, to be read. Only the later requests of the large campaign, and unknown ones, have messages.

    :param url: URL of an empty database, or of a new file.
    :param campaigns: number of campaigns, at least 10.
    :param messages: number of messages of the large campaign.
    """
    sqlite = url.get_backend_name() == "sqlite"
    (open_sqlite(Path(str(url.database))) if sqlite else open_postgres(url)).close()
    small, few, large = campaigns * REQUESTS, campaigns // UNKNOWN_EVERY * CHUNK, large_campaign(campaigns)
    more = messages - ROWS  # beside its first requests
    began, step = time.time() - AGE_SECONDS, AGE_SECONDS / (campaigns + 1)

    def campaign(place: Any) -> dict[str, Any]:
        name = literal("campaign-") + cast(place + 1, String)
        return {"id": place + 1, "name": name, "created_at": began + place * step}

    def attempt(place: Any) -> dict[str, Any]:
        number, turn = place // TRIES + 1, place % TRIES
        failed = or_(turn < TRIES - 1, number % UNKNOWN_EVERY == 1)
        started = began + number * step
        return {
            "id": place + 1,
            "dag_id": literal("dag_") + cast(number % DAGS, String),
            "task_id": "text",
            "run_id": literal("scheduled__") + cast(number, String),
            "map_index": -1,
            "try_number": turn + 1,
            "host": "host",
            "pid": place + 1,
            "started_at": started,
            "campaign_id": number,
            "conn_id": "sms_default",
            "state": case((failed, "failed"), else_="ended"),
            "updated_at": started + turn,
            "total": ROWS,
            "done": ROWS,
            "not_sent": 0,
            "invalid": 1,
            "rate": 1_000.0,
            "figures": json.dumps(FIGURES),
        }

    def request(place: Any) -> dict[str, Any]:
        number = case((place < small, place // REQUESTS + 1), else_=large)
        turn = case((place < small, place % REQUESTS), else_=place - small)
        unknown = or_(
            and_(place < small, number % UNKNOWN_EVERY == 0, turn == 0),
            and_(place >= small, turn < UNKNOWN_AT_ONCE),
        )
        claimed = began + number * step + turn * 0.004

        def known(value: Any) -> Any:
            return case((unknown, None), else_=value)

        return {
            "id": place + 1,
            "campaign_id": number,
            "attempt_id": number * TRIES,
            "kind": "bulk",
            "state": case((unknown, UNKNOWN), else_=ACCEPTED),
            "submitted": CHUNK,
            "claimed_at": claimed,
            "deadline": claimed + 45.0,
            "finished_at": claimed + 0.05,
            "http_status": known(200),
            "event_id": known(place + literal(FIRST_EVENT, BigInteger)),
            "messages": known(CHUNK),
            "parts": known(turn % CHUNK + CHUNK),
            # Costs differ, like those of networks.
            "cost": known(cast(turn % 997 + CHUNK, String) + ".50"),
            "reason": case((unknown, "no answer in time"), else_=None),
            "response": known(RESPONSE),
        }

    def message(place: Any) -> dict[str, Any]:
        number = case((place < few, (place // CHUNK + 1) * UNKNOWN_EVERY), else_=large)
        request_id = case((place < few, (number - 1) * REQUESTS + 1), else_=(place - few) // CHUNK + small + 1)
        return {
            "campaign_id": number,
            "message_key": cast(cast(place + literal(10**15, BigInteger), String), LargeBinary),
            "destination": place + literal(FIRST_NUMBER, BigInteger),
            "request_id": request_id,
        }

    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        _insert(connection, schema.campaign, campaigns, campaign)
        _insert(connection, schema.attempt, campaigns * TRIES, attempt)
        _insert(connection, schema.request, small + more // CHUNK, request)
        _insert(connection, schema.message, few + more, message)
    if not sqlite:
        execute(url, "VACUUM ANALYZE")  # a real server does this on its own within minutes


def _insert(connection: Connection, table: Table, rows: int, row_of: Callable[[Any], dict[str, Any]]) -> None:
    """Insert as many rows, whose values are constants, and expressions of their place from 0."""
    places = select(literal(0, BigInteger).label("place")).cte("places", recursive=True)
    places = places.union_all(select(places.c.place + 1).where(places.c.place < rows - 1))
    row = row_of(places.c.place)
    values = [literal(value) if isinstance(value, (str, int, float)) else value for value in row.values()]
    connection.execute(insert(table).from_select([*row], select(*values)))
