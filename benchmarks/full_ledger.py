"""A full ledger, with thousands of campaigns and one of millions of messages, written in bulk within minutes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, insert, text

from airflow_provider_sms.ledger import schema
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from benchmarks.data import FIRST_NUMBER
from benchmarks.sizes import CHUNK
from benchmarks.standin import ANSWER, FIRST_EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Table
    from sqlalchemy.engine import URL, Connection

TRIES = 3
"""Attempts of each campaign; the last one made the requests."""
REQUESTS = 10
"""Requests of each campaign except the large one."""
DAGS = 50
UNKNOWN_AT_ONCE = 32
"""Requests of the large campaign whose outcome is unknown, as after the death of a process."""
UNKNOWN_EVERY = 500
"""One campaign in this many has an unknown request, and another one has failed."""
AGE_SECONDS = 20 * 86_400.0
ROWS_AT_ONCE = 5_000

# The first bytes of keys are spread evenly, like those of hashes, and ascend, so that rows are written in their order.
_MESSAGES = {
    "sqlite": (
        "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "
        "WITH RECURSIVE each_one(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM each_one WHERE i < :messages - 1) "
        "SELECT :campaign, CAST(substr(:bytes, 1 + i * 256 / :messages, 1) || printf('%015d', i) AS BLOB), "
        ":number + i, :request + i / :chunk FROM each_one"
    ),
    "postgresql": (
        "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "
        "SELECT :campaign, substring(CAST(:bytes AS bytea), CAST(1 + i * 256 / :messages AS int), 1) "
        "|| decode(lpad(to_hex(i), 30, '0'), 'hex'), "
        ":number + i, :request + i / :chunk "
        "FROM generate_series(0, CAST(:messages AS bigint) - 1) AS i"
    ),
}
_BYTES = bytes(range(256))
_SEQUENCE = "SELECT setval(pg_get_serial_sequence('{0}', 'id'), (SELECT max(id) FROM {0}))"


def large_campaign(campaigns: int) -> int:
    """Return the id of the large campaign, which is on the first page of the list.

    :param campaigns: number of campaigns in the ledger.
    """
    return campaigns - 5


def dag_ids() -> list[str]:
    """Return the DAGs of the campaigns."""
    return [f"dag_{number}" for number in range(DAGS)]


def fill(url: URL, campaigns: int, messages: int) -> None:
    """Create a ledger and fill it. Only the large campaign and unknown requests have messages.

    :param url: URL of an empty database, or of a new file.
    :param campaigns: number of campaigns, at least 10.
    :param messages: number of messages of the large campaign.
    """
    sqlite = url.get_backend_name() == "sqlite"
    (open_sqlite(Path(str(url.database))) if sqlite else open_postgres(url)).close()
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            _write(connection, campaigns, messages)
        if not sqlite:
            # A real server does this on its own within minutes.
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE"))
    finally:
        engine.dispose()


def _write(connection: Connection, campaigns: int, messages: int) -> None:
    large, began = large_campaign(campaigns), time.time() - AGE_SECONDS
    step = AGE_SECONDS / (campaigns + 1)
    times = {number: began + number * step for number in range(1, campaigns + 1)}
    tries = [(number, number * TRIES + turn, turn) for number in times for turn in range(TRIES)]
    named = ({"id": number, "name": f"campaign-{number}", "created_at": at} for number, at in times.items())
    _insert(connection, schema.campaign, named)
    _insert(connection, schema.attempt, (_attempt(*each, times[each[0]]) for each in tries))
    requests = {number: messages // CHUNK if number == large else REQUESTS for number in times}
    _insert(connection, schema.request, _requests(requests, times, large))
    series = text(_MESSAGES[connection.dialect.name])
    first = 1
    for number, count in requests.items():
        held = count if number == large else _unknown(number, large)
        if held:
            values = {"campaign": number, "number": FIRST_NUMBER, "request": first, "chunk": CHUNK, "bytes": _BYTES}
            connection.execute(series, {**values, "messages": held * CHUNK})
        first += count
    if connection.dialect.name == "postgresql":
        for table in (schema.campaign, schema.attempt, schema.request):
            connection.execute(text(_SEQUENCE.format(table.name)))


def _insert(connection: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS_AT_ONCE:
            connection.execute(insert(table), waiting)
            waiting = []
    if waiting:
        connection.execute(insert(table), waiting)


def _unknown(campaign: int, large: int) -> int:
    """Return how many of a campaign's first requests are unknown."""
    if campaign == large:
        return UNKNOWN_AT_ONCE
    return int(campaign % UNKNOWN_EVERY == 0)


def _attempt(campaign: int, number: int, turn: int, at: float) -> dict[str, Any]:
    failed = turn < TRIES - 1 or campaign % UNKNOWN_EVERY == 1
    rows = REQUESTS * CHUNK
    figures = {
        "rows": rows,
        "suppressed": 0,
        "duplicate": 0,
        "cost_breakdown": {"Local": {"cost": float(rows), "quantity": rows}},
        "error_report": {"NoNetwork": 1, "Duplicates": 0, "OptedOuts": 0, "Faults": 0},
    }
    return {
        "id": number,
        "dag_id": f"dag_{campaign % DAGS}",
        "task_id": "text",
        "run_id": f"scheduled__{campaign}",
        "map_index": -1,
        "try_number": turn + 1,
        "host": "host",
        "pid": number,
        "started_at": at,
        "campaign_id": campaign,
        "conn_id": "sms_default",
        "state": "failed" if failed else "ended",
        "updated_at": at + turn,
        "total": rows,
        "done": rows,
        "not_sent": 0,
        "invalid": 1,
        "rate": 1_000.0,
        "figures": json.dumps(figures),
    }


def _requests(requests: dict[int, int], times: dict[int, float], large: int) -> Iterator[dict[str, Any]]:
    number = 0
    for campaign, count in requests.items():
        unknown = _unknown(campaign, large)
        for place in range(count):
            number += 1
            claimed = times[campaign] + place * 0.004
            known = place >= unknown
            yield {
                "id": number,
                "campaign_id": campaign,
                "attempt_id": campaign * TRIES + TRIES - 1,
                "kind": "bulk",
                "state": ACCEPTED if known else UNKNOWN,
                "submitted": CHUNK,
                "claimed_at": claimed,
                "deadline": claimed + 45.0,
                "finished_at": claimed + 0.05,
                "http_status": 200 if known else None,
                "event_id": FIRST_EVENT + number if known else None,
                "messages": CHUNK if known else None,
                "parts": CHUNK + place % CHUNK if known else None,
                # Costs differ, like those of networks.
                "cost": f"{CHUNK + place % 997 / 10:.2f}" if known else None,
                "reason": None if known else "no answer in time",
                "response": (ANSWER % {b"n": CHUNK, b"id": FIRST_EVENT + number}).decode() if known else None,
            }
