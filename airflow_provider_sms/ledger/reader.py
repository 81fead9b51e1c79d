"""A ledger that is only read: over connections that cannot write, and that keep no sender waiting."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.ledger.backend import ledger_errors, sql_state
from airflow_provider_sms.ledger.open import check_version
from airflow_provider_sms.ledger.postgres_engine import ServerClock, describe, postgres_engine
from airflow_provider_sms.ledger.schema import version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy.engine import URL, Connection, Engine

STATEMENT_SECONDS = 10
"""Seconds that a statement may take on a server, and all statements of one read in a file: people wait for pages."""
_STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks at the time: a few milliseconds."""
_SQLITE_INTERRUPTED = "interrupted"
_QUERY_CANCELED = "57014"


class LedgerReader:
    """A ledger that is read. Any thread may use it.

    :param engine: SQLAlchemy's engine for it, whose connections cannot write.
    :param description: which database it is, for people.
    :param clock: seconds since the epoch, by the clock of the senders; right within :meth:`read` only.
    """

    def __init__(self, engine: Engine, description: str, clock: Callable[[], float]) -> None:
        self.description = description
        self.clock = clock
        self._engine = engine
        self._checked = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that sees one state of the ledger, that of its beginning.

        :raises InputError: there is no ledger.
        :raises LedgerVersionError: this package cannot use the version of the ledger.
        """
        with ledger_errors("read"), _time_limit(), self._engine.connect() as connection:
            if not self._checked:
                self._check(connection)
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _check(self, connection: Connection) -> None:
        if not inspect(connection).has_table(version.name):
            raise InputError(f"{self.description} holds no ledger. The first task that sends creates one")
        check_version(connection.execute(select(version.c.version)).scalar_one())
        self._checked = True


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise the timeout of a statement as an error in words."""
    try:
        yield
    except DBAPIError as error:
        if sql_state(error) != _QUERY_CANCELED and str(error.orig) != _SQLITE_INTERRUPTED:
            raise
        raise LedgerError(
            f"The ledger was not read within {STATEMENT_SECONDS} seconds, so the page gave up. Nothing was changed. "
            "Try again later, or use airflow-sms, which has no such limit"
        ) from None


def read_sqlite(path: Path) -> LedgerReader:
    """Return a reader of the ledger in a file of this machine.

    :param path: the file, which must exist.
    """
    engine = create_engine(
        "sqlite://",
        # SQLAlchemy would take the URI for a file's name. The file is opened anew each time, since another one may
        # have taken its place.
        creator=lambda: _connect(path),
        poolclass=NullPool,
        hide_parameters=True,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return LedgerReader(engine, str(path), lambda: time.time())  # noqa: PLW0108 - tests set it


def _connect(path: Path) -> Any:
    import sqlite3
    from urllib.parse import quote

    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro",
        uri=True,
        isolation_level=None,
        timeout=5,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only=ON")
    # Opened anew for each read, so the limit is that of one read.
    give_up = time.monotonic() + STATEMENT_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > give_up, _STEPS)
    return connection


def read_postgres(url: URL) -> LedgerReader:
    """Return a reader of the ledger in a PostgreSQL database.

    :param url: SQLAlchemy's, with the driver.
    """
    engine = postgres_engine(
        url,
        name="airflow-provider-sms page",
        isolation_level="REPEATABLE READ",
        pool_size=2,
        execution_options={"postgresql_readonly": True},
    )

    clock = ServerClock()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_SECONDS * 1000}")
        clock.read(connection)

    return LedgerReader(engine, describe(url), clock)
