"""What a million messages take in PostgreSQL: bytes, write-ahead log, and a purge against dropping a table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text

from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.purge import forget_campaign, old_campaigns
from benchmarks.cases.growing import filled
from benchmarks.figures import Figure
from benchmarks.postgres import new_database
from benchmarks.processes import WrongError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

    from benchmarks.bench import Bench

TABLES = ("sms_message", "sms_request")
_LATER = 10 * 365 * 86_400.0
"""Seconds after now, by when nothing has happened in the campaign for long."""


def storage(bench: Bench) -> list[Figure]:
    """Fill a ledger in PostgreSQL with a tenth of the large table, purge it, and drop a copy of its messages."""
    rows = bench.sizes.small
    bench.tell(f"writing {rows:,} claims, PostgreSQL")
    database = new_database(bench.postgres, bench.name("storage"))
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    try:
        written = _measured(engine, lambda: filled(bench, database, rows))
        with engine.connect() as connection:
            figures = [figure for table in TABLES for figure in _sizes(connection, table, rows)]
            connection.execute(text("CREATE TABLE part (LIKE sms_message INCLUDING ALL)"))
            connection.execute(text("INSERT INTO part SELECT * FROM sms_message"))
            connection.execute(text("CHECKPOINT"))
        bench.tell("purging them")
        store = open_postgres(database)
        (old,) = old_campaigns(store, time.time() + _LATER)
        purged = _measured(engine, lambda: _require(forget_campaign(store, old), rows))
        store.close()
        vacuumed = _measured(engine, lambda: _run(engine, "VACUUM sms_message"))
        dropped = _measured(engine, lambda: _run(engine, "DROP TABLE part"))
    finally:
        engine.dispose()
    return [
        *figures,
        Figure("write-ahead log of a message, PostgreSQL", f"{written[1] / rows:.0f} bytes", written[1] / rows),
        _cost(f"a purge of {rows:,} messages", purged, rows),
        _cost("  the vacuum after it", vacuumed, rows),
        _cost("  dropping a table of as many instead", dropped, rows),
    ]


def _sizes(connection: Connection, table: str, rows: int) -> list[Figure]:
    query = text("SELECT pg_total_relation_size(:name), pg_indexes_size(:name)")
    total, indexes = connection.execute(query, {"name": table}).one()
    words = f"{total / rows:.0f} bytes a message: table {(total - indexes) / rows:.0f}, indexes {indexes / rows:.0f}"
    return [Figure(f"{table}, {rows:,} messages", words, total / rows)]


def _cost(what: str, cost: tuple[float, int], rows: int) -> Figure:
    seconds, log = cost
    words = (
        f"{seconds:.2f} s, {seconds / rows * 1e6:.2f} µs a message; write-ahead log {log / rows:.1f} bytes a message"
    )
    return Figure(what, words, seconds, details={"log_bytes": log})


def _measured(engine: Engine, work: Any) -> tuple[float, int]:
    """Return the seconds of some work, and the bytes of write-ahead log that the server wrote meanwhile."""
    before, began = _written(engine), time.perf_counter()
    work()
    return time.perf_counter() - began, _written(engine) - before


def _written(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")).scalar_one())


def _run(engine: Engine, statement: str) -> None:
    with engine.connect() as connection:
        connection.execute(text(statement))


def _require(forgotten: int, rows: int) -> None:
    if forgotten != rows:
        raise WrongError(f"{forgotten} messages were forgotten, of {rows}")
