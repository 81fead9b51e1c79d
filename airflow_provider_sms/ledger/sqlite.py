"""The ledger in a SQLite file, for tasks that all run on one machine.

The file must be on a disk of that machine and have one name: SQLite shares memory and locks through it, and keeps what
was written last in files beside it.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from airflow_provider_sms.exceptions import LedgerError, SmsError
from airflow_provider_sms.ledger.backend import (
    BUSY_SECONDS,
    CLAIM_COLUMNS,
    LedgerBackend,
    Remains,
    RequestSize,
    busy,
    joined,
    ledger_errors,
)
from airflow_provider_sms.ledger.open import prepare
from airflow_provider_sms.messages.message import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection, Engine

    from airflow_provider_sms.messages.message import Outgoing

_READS = "sms_ledger_reads"

# Many rows come as one JSON array, and many keys as one value, which the statement cuts up. A parameter for each key
# would cost more than the work itself, and after each statement this thread waits for Python's lock behind all threads
# that post.
_INSERT_REQUESTS = (
    f"INSERT INTO sms_request ({', '.join(CLAIM_COLUMNS)}, submitted, planned_parts, planned_cost) "  # noqa: S608 - no value
    f"SELECT {', '.join('?' * len(CLAIM_COLUMNS))}, json_extract(new.value, '$[0]'), json_extract(new.value, '$[1]'), "
    "json_extract(new.value, '$[2]') FROM json_each(?) AS new ORDER BY new.key"
)
_INSERT_MESSAGES = (
    "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "
    "SELECT ?, substr(?, 1 + 16 * (? * chunk.key + new.key), 16), new.value, ? + chunk.key "
    "FROM json_each(?) AS chunk CROSS JOIN json_each(chunk.value) AS new WHERE true "
    "ON CONFLICT DO NOTHING"
)
_HOLDERS = (
    "SELECT group_concat(wanted.key), group_concat(m.request_id) FROM json_each(?) AS wanted "
    "CROSS JOIN sms_message m ON m.campaign_id = ? AND m.message_key = substr(?, 1 + 16 * wanted.key, 16)"
)
_CACHE_KIB = 32 * 1024
"""KiB of pages that a connection keeps in memory. Keys are random, so every claim touches other pages."""
_PAGE_BYTES = 16 * 1024
"""Bytes of a page in a new file; an existing one keeps its own. Claims in a large ledger touch fewer large pages."""
_LOG_BYTES = 32 * 1024 * 1024
"""Bytes that the write-ahead log holds before they are copied into the file: many pages are written several times."""

_STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks at the time: a few milliseconds."""
LOG_SECONDS = 10.0
"""Seconds to wait for the processes that need the log: most of them need it for the length of a transaction."""
_EMPTIED = Remains(
    is_gone=True, words="Deleted rows are overwritten with zeros in the ledger's file, and its -wal file is emptied"
)
_IN_USE = Remains(
    is_gone=False,
    words="Deleted rows are still in the ledger's file or in the -wal file beside it, because another process "
    "reads or writes there. Run the command again when nothing sends, or close the program that reads",
)

NETWORK = frozenset(
    (  # noqa: SIM905  # a list would be a page
        "9p acfs afs beegfs ceph cifs coda drvfs fakeowner fuse gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 "
        "orangefs panfs prl_fs pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs"
    ).split()
)
"""File systems of other machines, including the host of a virtual machine: their locks do not hold as SQLite needs them
to, and memory is not shared through them."""

_ESCAPE = re.compile(r"\\([0-7]{3})")
_INSTEAD = "Set [sms] ledger_path to a disk of this machine, or ledger_conn_id to a connection to PostgreSQL"


class SQLiteBackend(LedgerBackend):
    """A ledger in a file; one transaction writes at a time, whatever its lock."""

    def __init__(self, engine: Engine, path: Path, busy_seconds: float) -> None:
        reading = engine.execution_options(**{_READS: True})
        super().__init__(engine, reading, str(path), lambda: time.time())  # noqa: PLW0108 - tests set it
        self._busy_seconds = busy_seconds
        self._path = path
        self._identity = self._find_identity()

    def remove_remains(self) -> Remains:
        """Move the write-ahead log, which may hold copies of deleted rows, into the file, and truncate it."""
        with ledger_errors("emptied of deleted rows"), closing(self._engine.raw_connection()) as connection:
            cursor = connection.cursor()  # outside of any transaction
            cursor.execute(f"PRAGMA busy_timeout={int(LOG_SECONDS * 1000)}")
            (busy, *_) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return _IN_USE if busy else _EMPTIED

    def _lock(self, connection: Connection, lock: int, patience: float | None, *, shared: bool) -> None:  # noqa: ARG002  # one for all
        """Begin to write, which waits for every other writer, and check that the file is still there.

        Writing to a file that was deleted or replaced succeeds, and the next task would find another ledger.
        """
        seconds = self._busy_seconds if patience is None else patience
        connection.exec_driver_sql(f"PRAGMA busy_timeout={int(seconds * 1000)}")
        connection.exec_driver_sql("PRAGMA query_only=OFF")
        try:
            # A transaction that reads first and writes later fails where another one wrote in between.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError as error:
            if "locked" not in str(error.orig):
                raise
            raise busy(seconds) from None
        if self._identity is None or self._identity != self._find_identity():
            raise LedgerError(
                f"The ledger {self._path} was deleted or replaced while it was in use; nothing more is sent"
            )

    def _find_identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def insert_requests(
        self, connection: Connection, claim: Mapping[str, Any], sizes: Sequence[RequestSize]
    ) -> Sequence[int]:
        """Insert requests, and return their ids, which are consecutive: no other process writes meanwhile."""
        values = (*(claim[name] for name in CLAIM_COLUMNS), json.dumps(sizes))
        last: int = connection.exec_driver_sql(_INSERT_REQUESTS, values).lastrowid
        return range(last + 1 - len(sizes), last + 1)

    def insert_messages(
        self, connection: Connection, campaign_id: int, request_ids: Sequence[int], chunks: Sequence[Outgoing]
    ) -> int:
        """Insert the messages that are free, and return how many there were."""
        size = max(len(chunk.keys) for chunk in chunks)
        keys = b"".join(joined(chunk.keys).ljust(KEY_BYTES * size) for chunk in chunks)
        # Texts: the column makes them numbers, at less than half the cost of doing it here.
        destinations = orjson.dumps([chunk.destinations for chunk in chunks]).decode()
        values = (campaign_id, keys, size, request_ids[0], destinations)
        return connection.exec_driver_sql(_INSERT_MESSAGES, values).rowcount

    def _holders(self, connection: Connection, campaign_id: int, keys: bytes, count: int) -> Sequence[str | None]:
        return connection.exec_driver_sql(_HOLDERS, (json.dumps([0] * count), campaign_id, keys)).one()


def open_sqlite(
    path: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS, read_seconds: float | None = None
) -> SQLiteBackend:
    """Open the ledger in a SQLite file of this machine.

    It has a write-ahead log, and every commit is on the disk before it returns (``synchronous=FULL``): a claim must
    survive a crash of the machine.

    :param create: whether to make it where there is none; otherwise there must be one.
    :param read_seconds: how long a read may take, for a page; None means as long as it does.
    """
    file = settle_path(path, mounts_of_this_machine())
    if create:
        _make_file(file)
    waits = busy_seconds if read_seconds is None else min(busy_seconds, read_seconds)
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # The driver must not begin transactions: those that write begin with their lock.
        connect_args={"isolation_level": None, "timeout": waits, "check_same_thread": False},
        # An error must not quote its parameters: they are people's numbers.
        hide_parameters=True,
        # For a page, the file is opened anew each time, since another one may have taken its place.
        poolclass=None if read_seconds is None else NullPool,
    )

    @event.listens_for(engine, "do_connect")
    def _name_existing(_dialect: Any, _record: Any, arguments: list[Any], named: dict[str, Any]) -> None:
        # Where the file was deleted meanwhile, the driver would create an empty one.
        arguments[0] = f"file:{quote(str(path.absolute()))}?mode=rw"
        named["uri"] = True

    @event.listens_for(engine, "connect")
    def _configure(dbapi_connection: Any, _record: Any) -> None:
        if create:
            # Before anything is written: the log writes the first page of a new file.
            dbapi_connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
            _enter_wal(dbapi_connection, give_up=time.monotonic() + busy_seconds)
        dbapi_connection.execute("PRAGMA synchronous=FULL")
        dbapi_connection.execute("PRAGMA foreign_keys=ON")
        dbapi_connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        (page_bytes,) = dbapi_connection.execute("PRAGMA page_size").fetchone()
        dbapi_connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_BYTES // page_bytes}")
        # Statement journals stay in memory: in a file they would be written twice.
        dbapi_connection.execute("PRAGMA temp_store=MEMORY")
        # Deleted numbers are overwritten with zeros, and so are those of rows that move to another page when one is
        # split: a copy that stays behind there outlives every later deletion of the row. Not all builds do that.
        dbapi_connection.execute("PRAGMA secure_delete=ON")
        if read_seconds is not None:
            give_up = time.monotonic() + read_seconds
            dbapi_connection.set_progress_handler(lambda: time.monotonic() > give_up, _STEPS)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get(_READS):
            connection.exec_driver_sql("PRAGMA query_only=ON")
            connection.exec_driver_sql("BEGIN")

    store = SQLiteBackend(engine, path, busy_seconds)
    try:
        prepare(store, create=create)
    except SmsError:
        store.close()
        raise
    return store


def _enter_wal(dbapi_connection: Any, *, give_up: float) -> None:
    """Switch to the write-ahead log; SQLite does not wait when two processes do this at once."""
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


def _make_file(file: Path) -> None:
    """Make an empty file where there is none: SQLite itself creates none, as ``open_sqlite`` opens it."""
    try:
        # Only its owner may read who was texted.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"The ledger {file} cannot be made: {error.strerror}. Set [sms] ledger_path") from None


def settle_path(path: Path, mounts: Sequence[tuple[Path, str]]) -> Path:
    """Return the file that a path leads to, which need not exist yet."""
    if not path.parent.is_dir():
        raise LedgerError(f"The ledger's folder {path.parent} does not exist: make it, or set [sms] ledger_path")
    file = Path(os.path.realpath(path))
    if file.is_dir():
        raise LedgerError(f"The ledger {path} is a folder: set [sms] ledger_path to a file in it")
    nearest = max(filter(file.is_relative_to, dict(mounts)), key=lambda point: len(point.parts), default=None)
    # What is mounted last at a point hides what was there. FUSE names what is behind it: fuse.sshfs, fuse.s3fs.
    kind = "" if nearest is None else dict(mounts)[nearest]
    if kind in NETWORK or kind.startswith("fuse."):
        raise LedgerError(
            f"The ledger {path} would be on a network file system ({kind}), which cannot lock it safely. "
            f"Nothing was sent. {_INSTEAD}"
        )
    if nearest == file:
        raise LedgerError(
            f"The ledger {path} is mounted as a single file. What was written last is in files beside it, which each "
            "container then has for itself, so people could be texted twice. Nothing was sent. Mount the folder that "
            "holds the file, the same for all, and never the file"
        )
    return file


def mounts_of_this_machine() -> Sequence[tuple[Path, str]]:
    """Return the mount points, each with the type of its file system; none on a system that does not tell."""
    try:
        lines = os.fsdecode(Path("/proc/self/mounts").read_bytes()).splitlines()
    except OSError:
        return []
    pieces = (line.split(" ") for line in lines)
    return [(Path(_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), where)), kind) for _, where, kind, *_ in pieces]
