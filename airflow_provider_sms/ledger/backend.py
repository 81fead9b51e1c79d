"""The ledger's database: durable transactions, one after the other where they must be, on two kinds of database."""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from airflow_provider_sms.exceptions import LedgerAwayError, LedgerBusyError, LedgerError, LedgerLostError
from airflow_provider_sms.formatting import by_count, duration
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.message import KEY_BYTES
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    from sqlalchemy.engine import Connection, CursorResult, Engine
    from sqlalchemy.sql.expression import ClauseElement

    from airflow_provider_sms.messages.message import Outgoing

log = logging.getLogger(__name__)

T = TypeVar("T")

LEDGER_LOCK = 0x5355_4D53
"""The lock of the whole ledger: held while its tables are created, shared by what belongs to no campaign."""

BUSY_SECONDS = 60.0
"""Seconds that a process waits for another one's commit before it gives up."""

PATIENCE_SECONDS = 300.0
"""Seconds for which a task tries again while the ledger is away, unless the configuration says otherwise."""
RETRY_SECONDS = 0.5
"""Seconds between two tries."""

IDS_AT_ONCE = 500
"""Ids that one statement names: older versions of SQLite take no more than 999 parameters."""

CLAIM_COLUMNS = (
    "campaign_id", "attempt_id", "kind", "state", "claimed_at", "deadline", "account",
)  # fmt: skip
"""The columns that the requests of one commit have in common, in the order in which statements name them."""

_UNDONE = {
    "40P01": "The ledger is busy: the server undid a write that waited for another one",
    "25P03": "The ledger was not written to: the server ended a transaction that this machine left idle for seconds",
}
"""What it means when a server ends a transaction before its commit, by SQLSTATE: nothing of it has happened."""

_TOO_SLOW, _INTERRUPTED = "57014", "interrupted"
"""The SQLSTATE, and SQLite's word, for a statement that took too long."""
_SHUTTING_DOWN = ("57P01", "57P02", "57P03")
"""SQLSTATEs of a server that ends a session, or takes none yet."""
_is_out_of_reach = re.compile(
    "refused|server running|closed the connection|reset by peer|timeout expired|timed out|unreachable|No route|"
    "did not respond|failed to resolve|name resolution|starting up|not yet accepting|shutting down|recovery mode|"
    "too many (clients|connections)|connection slots"
).search
"""Finds words of libpq, the driver and the server where no session begins; there is no SQLSTATE for them then."""

RequestSize = tuple[int, int | None, str | None]
"""How many messages a request has, their SMS parts, and the credits that they are expected to cost; None: not known."""


class Remains(NamedTuple):
    """What is left of deleted rows.

    :param is_gone: whether nothing is left in the ledger's own files; None where a server keeps them.
    """

    is_gone: bool | None
    words: str


class Patience:
    """Tries again what fails while the ledger is away. All tries since it last responded share the same seconds.

    :param seconds: for how long; none for a person. Others expect an outcome for as long after a request's deadline.
    """

    def __init__(
        self,
        seconds: float = PATIENCE_SECONDS,
        stop: StopFlag | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._stop = StopFlag() if stop is None else stop
        self._sleep = sleep
        self._monotonic = monotonic
        self._failing_since: float | None = None
        self._stopped_at: float | None = None

    def again(
        self,
        work: Callable[[], T],
        errors: type[Exception] = LedgerAwayError,
        *,
        stopped_seconds: float = 0.0,
    ) -> T:
        """Return the result of work, tried again where it fails.

        :param work: a read, or a write that may be made twice: one that raised may have happened.
        :param errors: those that are worth another try; never that of a ledger that has gone back.
        """
        while True:
            began = self._monotonic()
            if self._stop.is_set() and self._stopped_at is None:
                self._stopped_at = began
            try:
                result = work()
            except LedgerLostError:
                raise
            except errors as error:
                self._wait(error, began, stopped_seconds)
            else:
                self._failing_since = None
                return result

    def _wait(self, error: Exception, began: float, stopped_seconds: float) -> None:
        """Wait for the next try, or raise the error of the one that began at a moment if there is no next one."""
        is_first = self._failing_since is None
        self._failing_since = began if self._failing_since is None else self._failing_since
        until = self._failing_since + self.seconds
        if self._stop.is_set():
            until = min(until, (began if self._stopped_at is None else self._stopped_at) + stopped_seconds)
        if self._monotonic() + RETRY_SECONDS > until:
            raise error
        if is_first:
            log.warning("%s. Trying again for up to %s", error, duration(self.seconds))
        self._sleep(RETRY_SECONDS)


class LedgerBackend(ABC):
    """A database that holds a ledger: what its two kinds have in common.

    :param reading: the same engine, whose transactions see one state of the database and cannot write.
    :param clock: seconds since the epoch, the same for every process that shares the ledger.
    """

    def __init__(self, engine: Engine, reading: Engine, description: str, clock: Callable[[], float]) -> None:
        self.description = description
        self._engine = engine
        self.reading = reading
        self.clock = clock
        self.patience = Patience()

    @contextmanager
    def write(self, lock: int, *, shared: bool = False, patience: float | None = None) -> Iterator[Connection]:
        """Open a transaction that is durable once the block has ended without an error.

        :param lock: transactions with the same number follow one another; 64 bits, signed.
        :param shared: whether other transactions that share the lock may run beside this one. None of them may read
            what another one writes, except for what a unique index decides.
        :param patience: seconds to wait for another process's commit, for a transaction that may be left out; None
            means as long as the backend waits for all others.
        :raises LedgerBusyError: when other processes have kept it waiting too long; then nothing of it has happened.
        :raises LedgerError: when it cannot begin, fails within, or cannot be committed; nothing of it may be relied on.
        """
        with ledger_errors("written to"), self._engine.connect() as connection:
            with connection.begin():
                self._lock(connection, lock, patience, shared=shared)
                yield connection
            self._require_durable(connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that sees one committed state and keeps no writer waiting, for a person: no try again."""
        with ledger_errors("read"), self.reading.connect() as connection:
            yield connection

    def fetch(self, read: Callable[[Connection], T]) -> T:
        """Return what a function reads, which begins anew where the ledger goes away meanwhile."""

        def once() -> T:
            with self.read() as connection:
                return read(connection)

        return self.patience.again(once)

    def save(self, lock: int, write: Callable[[Connection], T], *, shared: bool = False) -> T:
        """Return the result of a function that writes and may be repeated: what failed may have been committed."""

        def once() -> T:
            with self.write(lock, shared=shared) as connection:
                return write(connection)

        return self.patience.again(once)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _require_durable(self, connection: Connection) -> None:  # noqa: B027  # a file tells by an error
        """Refuse a commit that returned and may not be durable."""

    @abstractmethod
    def _lock(self, connection: Connection, lock: int, patience: float | None, *, shared: bool) -> None:
        """Wait for other transactions with the same number; with a shared lock, only for those that do not share it.

        Within a transaction that has just begun.
        """

    @abstractmethod
    def remove_remains(self) -> Remains:
        """Remove what deleted rows leave outside the tables, as far as this process may."""

    @abstractmethod
    def insert_requests(
        self, connection: Connection, claim: Mapping[str, Any], sizes: Sequence[RequestSize]
    ) -> Sequence[int]:
        """Insert requests, and return their ids.

        :param claim: the values that they have in common, by column.
        """

    @abstractmethod
    def insert_messages(
        self, connection: Connection, campaign_id: int, request_ids: Sequence[int], chunks: Sequence[Outgoing]
    ) -> int:
        """Insert the messages that are free, and return how many there were.

        They are inserted in the order of their keys, so that of two transactions that want the same messages only one
        waits for the other.

        :param request_ids: the requests, just inserted, one for each chunk.
        """

    def holders(self, connection: Connection, campaign_id: int, keys: bytes | memoryview) -> npt.NDArray[np.int64]:
        """Return the request that holds each message, or 0, by their keys, one after the other.

        The statement returns two texts, of places and of requests: a row for each message would take thrice as long.
        """
        import numpy as np  # not for commands and pages

        count = len(keys) // KEY_BYTES
        held = np.zeros(count, np.int64)
        places, requests = self._holders(connection, campaign_id, bytes(keys), count)
        if places is not None and requests is not None:
            held[np.fromstring(places, np.int64, sep=",")] = np.fromstring(requests, np.int64, sep=",")
        return held

    @abstractmethod
    def _holders(self, connection: Connection, campaign_id: int, keys: bytes, count: int) -> Sequence[str | None]:
        """Return the places of the keys that a request holds, from 0, and these requests, with commas between."""


def campaign_lock(name: str) -> int:
    """Return the number under which the transactions on a campaign follow one another: 64 bits, signed.

    On PostgreSQL, commits that write no rows but those of their own requests or attempt share it: they follow all
    others, and run beside each other. SQLite has one lock for everything.
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


class Compiled:
    """A SQLAlchemy statement that runs with every request, compiled once.

    SQLAlchemy builds a statement anew each time it runs, which costs more than the database's own work on it.

    :param statement: all its values are named parameters, or columns of an insert; they reach the driver as they are.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._written: dict[str, tuple[str, Sequence[str] | None]] = {}

    def run(self, connection: Connection, *rows: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it for each row of values."""
        dialect = connection.dialect
        if dialect.driver not in self._written:
            written = self._statement.compile(dialect=dialect)
            self._written[dialect.driver] = (str(written), getattr(written, "positiontup", None))
        sql, order = self._written[dialect.driver]
        values = [row if order is None else tuple(row[name] for name in order) for row in rows]
        return connection.exec_driver_sql(sql, values[0] if len(values) == 1 else values)


def in_pieces(values: Sequence[T], size: int = IDS_AT_ONCE) -> Iterator[Sequence[T]]:
    """Split values, such as ids, into pieces that one statement, or one transaction, can take."""
    return (values[start : start + size] for start in range(0, len(values), size))


def joined(keys: Sequence[bytes]) -> bytes:
    """Return keys as one value, which a statement cuts up again."""
    value = b"".join(keys)
    if len(value) != KEY_BYTES * len(keys):
        raise ValueError(f"A message key must have {KEY_BYTES} bytes")
    return value


def busy(seconds: float) -> LedgerBusyError:
    """Return the error for a lock that other processes have kept."""
    waited = f"{seconds:g} {by_count(seconds, 'second')}"
    return LedgerBusyError(
        f"The ledger is busy: other processes have kept its lock for {waited}, and nothing was written"
    )


def new_id(inserted: CursorResult[Any]) -> int:
    """Return the id of a row that was inserted."""
    key = inserted.inserted_primary_key
    if key is None:
        raise LedgerError("The database returned no id for a new row. Nothing was sent")
    return int(key[0])


def sql_state(error: BaseException) -> str | None:
    """Return the SQLSTATE of a server's error; None where the driver gives none."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's words, without numbers: a server's second line quotes the row."""
    return mask_numbers_in(str(error).partition("\n")[0])


def _is_away(error: BaseException) -> bool:
    """Return whether a server cannot be reached, is starting up or is shutting down, or has left the connection."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if not isinstance(error, OperationalError):
        return False
    if (state := sql_state(error)) is not None:
        return state in _SHUTTING_DOWN or state.startswith("08")
    return _is_out_of_reach(str(error.orig)) is not None


@contextmanager
def ledger_errors(done: str) -> Iterator[None]:
    """Raise errors of the database as errors of the ledger."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        # "from None": a traceback would show the row, with somebody's number.
        cause = getattr(error, "orig", None) or error
        if (undone := _UNDONE.get(sql_state(error) or "")) is not None:
            raise LedgerBusyError(undone) from None
        if sql_state(error) == _TOO_SLOW or str(cause) == _INTERRUPTED:
            raise LedgerError(
                f"The ledger cannot be {done} in time, and nothing was changed. Try again later; airflow-sms sets "
                "no limit of its own (statement_timeout)"
            ) from None
        kind = LedgerAwayError if _is_away(error) else LedgerError
        raise kind(f"The ledger cannot be {done}: {type(cause).__name__}: {first_line(cause)}") from None
