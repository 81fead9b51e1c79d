"""The ledger in a SQLite file, for tasks that all run on one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.sending.filesystem import mounts_of_this_machine, network_filesystem
from airflow_provider_sms.sending.store import BUSY_SECONDS, HolderRow, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy.engine import Connection, Engine

_WRITE = "sms_ledger_write"
_KEYS_AT_ONCE = 1000
_HOLDERS = (
    "SELECT m.message_key, r.id, r.state, r.deadline, r.claimant_id FROM sms_message m "
    "JOIN sms_request r ON r.id = m.request_id WHERE m.campaign_id = ? AND m.message_key IN"
)


class SQLiteStore(Store):
    """A ledger in a file; one transaction writes at a time, whatever its lock.

    :param path: the file, to see that it is still the one that was opened.
    """

    def __init__(self, engine: Engine, path: Path) -> None:
        super().__init__(engine, str(path), time.time)
        self._path = path
        self._identity: tuple[int, int] | None = None

    def _for_writing(self, connection: Connection) -> Connection:
        return connection.execution_options(**{_WRITE: True})

    def _lock(self, connection: Connection, lock: int) -> None:  # noqa: ARG002  # one lock is enough for a file
        """See that the file is still there; BEGIN IMMEDIATE has waited for every other writer already.

        Writing to a file that was deleted or replaced succeeds, and the next task would find another ledger.
        """
        try:
            found = self._path.stat()
        except OSError:
            identity = None
        else:
            identity = (found.st_dev, found.st_ino)
        self._identity = self._identity or identity
        if identity is None or identity != self._identity:
            raise LedgerError(
                f"The ledger {self._path} was deleted or replaced while it was in use; nothing more is sent"
            )

    def insert_messages(
        self,
        connection: Connection,
        campaign_id: int,
        request_id: int,
        keys: Sequence[bytes],
        destinations: Sequence[int | None],
    ) -> int:
        """Insert the messages that are free, and say how many those were."""
        return connection.exec_driver_sql(
            "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            [(campaign_id, key, number, request_id) for key, number in zip(keys, destinations, strict=True)],
        ).rowcount

    def holders(self, connection: Connection, campaign_id: int, keys: Sequence[bytes]) -> Iterator[HolderRow]:
        """Give the requests that hold any of the keys."""
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            # Written out: SQLAlchemy's IN costs more than the look-up itself.
            marks = ",".join("?" * len(some))
            rows = connection.exec_driver_sql(f"{_HOLDERS} ({marks})", (campaign_id, *some))
            yield from cast("Iterable[HolderRow]", rows)


def open_sqlite(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> SQLiteStore:
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
    if (kind := network_filesystem(path.absolute(), mounts_of_this_machine())) is not None:
        raise LedgerError(
            f"The ledger {path} would be on a network file system ({kind}), which cannot lock it safely. "
            "Nothing was sent. Set [sms] ledger_path to a disk of this machine, or ledger_conn_id to a connection to "
            "PostgreSQL"
        )
    # Others on the machine need not read who was texted.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # The driver must not begin transactions by itself; "begin" below does.
        connect_args={"isolation_level": None, "timeout": busy_seconds, "check_same_thread": False},
        # Older versions of SQLAlchemy pool no files; a connection that is kept holds the file that it was opened on.
        poolclass=QueuePool,
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

    store = SQLiteStore(engine, path)
    try:
        store.create_or_check()
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
