"""Opening the ledger's database: durable, serialised where it must be, and of a version that this code knows."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import LedgerError, LedgerVersionError
from airflow_provider_sms.sending import schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy.engine import Connection, Engine

BUSY_SECONDS = 60.0
"""How long a process waits for another one's commit before it gives up."""

_WRITE = "sms_ledger_write"


class Store:
    """A database that holds a ledger.

    :param engine: SQLAlchemy's engine for it, see :func:`open_sqlite`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction that is durable once the block has ended without an error.

        :raises LedgerError: when it cannot begin, fails within, or cannot be committed; nothing of it is kept then.
        """
        with _ledger_errors("written to"), self._engine.connect() as connection:
            writing = connection.execution_options(**{_WRITE: True})
            with writing.begin():
                yield writing

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one consistent state and keeps no writer waiting.

        :raises LedgerError: when the ledger cannot be read.
        """
        with _ledger_errors("read"), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def open_sqlite(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> Store:
    """Open the ledger in a SQLite file of this machine, and make it where there is none.

    Write-ahead log, and every commit is on the disk before it returns (``synchronous=FULL``): a claim must survive the
    machine.

    :param path: the file; its folder must exist.
    :param busy_seconds: how long to wait for another process's commit.
    :raises LedgerError: when it cannot be opened or is not a ledger.
    :raises LedgerVersionError: when a newer version of this package wrote it.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"The ledger's folder {path.parent} does not exist: make it, or set [sms] ledger_path")
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # The driver must not begin transactions by itself; "begin" below does.
        connect_args={"isolation_level": None, "timeout": busy_seconds, "check_same_thread": False},
        # An error must not quote its parameters: they are people's numbers.
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def _configure(dbapi_connection: Any, _record: Any) -> None:
        _enter_wal(dbapi_connection, give_up=time.monotonic() + busy_seconds)
        dbapi_connection.execute("PRAGMA synchronous=FULL")
        dbapi_connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails where another one wrote in between.
        write = connection.get_execution_options().get(_WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    store = Store(engine)
    try:
        _create_or_check(store)
    except LedgerError:
        store.close()
        raise
    return store


def _enter_wal(dbapi_connection: Any, *, give_up: float) -> None:
    """Switch to the write-ahead log; SQLite does not wait by itself when two processes do this at once."""
    while True:
        try:
            (mode,) = dbapi_connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise LedgerError("The ledger's file system has no write-ahead log (is it a network share?)")
        return


def _create_or_check(store: Store) -> None:
    with store.write() as connection:
        schema.metadata.create_all(connection)
        version = connection.execute(select(schema.ledger_version.c.version)).scalar()
        if version is None:
            connection.execute(insert(schema.ledger_version).values(version=schema.SCHEMA_VERSION))
        elif version > schema.SCHEMA_VERSION:
            raise LedgerVersionError(
                f"The ledger is of version {version}; this package knows up to {schema.SCHEMA_VERSION}. "
                "Upgrade airflow-provider-sms here; nothing was sent"
            )


@contextmanager
def _ledger_errors(done: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise LedgerError(f"The ledger cannot be {done}: {type(error).__name__}: {error}") from error
