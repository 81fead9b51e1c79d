"""Connections of PostgreSQL's drivers with bounded waits, on which a warning at a commit is a failure.

Both drivers wait in C for as long as the connection stands, so every call that may wait for the server is bounded here.
And both return from a commit as if nothing were wrong when the server gave up waiting for its synchronous standby: a
warning is the only sign of it.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.formatting import by_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_FETCHING = ("fetchone", "fetchmany", "fetchall", "close")
_EXECUTING = ("execute", "executemany")


def bounded_connect(driver: str, seconds: float) -> Callable[..., Any]:
    """Return the function that connects, in place of the driver's own.

    A connection has an attribute ``patience``: the seconds that a call waits for the server's answer.

    :param driver: ``psycopg`` or ``psycopg2``.
    :param seconds: the patience of a new connection.
    :raises ImportError: the driver is another one, or is not installed.
    """
    if driver == "psycopg":
        return _psycopg(seconds)
    if driver == "psycopg2":
        return _psycopg2(seconds)
    raise ImportError(f"{driver} is not one of psycopg, psycopg2")


def _psycopg(seconds: float) -> Callable[..., Any]:
    import psycopg

    class Connection(psycopg.Connection[Any]):
        patience = seconds

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._said: list[str] = []
            said = self._said
            # The notice is freed once the handler has returned.
            self.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))

        def wait(self, *args: Any, **kwargs: Any) -> Any:
            """Wait for the server: every call of this driver does so here."""
            with _bounded(self):
                return super().wait(*args, **kwargs)

        def commit(self) -> None:
            self._said.clear()
            super().commit()
            _refuse_warnings(self, self._said)

    return Connection.connect


def _psycopg2(seconds: float) -> Callable[..., Any]:
    import psycopg2  # type: ignore[import-untyped]  # it has no types
    from psycopg2 import extensions

    calls = {name: _bounded_call(getattr(extensions.cursor, name)) for name in (*_EXECUTING, *_FETCHING)}
    cursor = type("Cursor", (extensions.cursor,), calls)

    class Connection(extensions.connection):  # type: ignore[misc]  # as above
        patience = seconds

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.cursor_factory = cursor

        def commit(self) -> None:
            self.notices.clear()
            with _bounded(self):
                super().commit()
            _refuse_warnings(self, self.notices)

        def rollback(self) -> None:
            with _bounded(self):
                super().rollback()

    def connect(*args: Any, **kwargs: Any) -> Any:
        return psycopg2.connect(*args, connection_factory=Connection, **kwargs)

    return connect


def _bounded_call(call: Callable[..., Any]) -> Callable[..., Any]:
    fetches = call.__name__ in _FETCHING

    @wraps(call)
    def bounded(cursor: Any, *args: Any, **kwargs: Any) -> Any:
        # A client-side cursor has fetched its rows already.
        if cursor.connection.closed or (fetches and cursor.name is None):
            return call(cursor, *args, **kwargs)
        with _bounded(cursor.connection):
            return call(cursor, *args, **kwargs)

    return bounded


@contextmanager
def _bounded(connection: Any) -> Iterator[None]:
    try:
        bound = WATCHDOG.bound(connection.fileno(), connection.patience)
        watched = bound.__enter__()
    except (OSError, RuntimeError) as error:
        # No descriptor or thread is left: without a bound no statement is sent.
        raise connection.OperationalError(f"the wait for the server cannot be bounded: {error}") from error
    try:
        yield
    except connection.Error:
        if not watched.expired:
            raise
        seconds = by_count(connection.patience, "second")
        words = f"the server did not respond within {connection.patience:g} {seconds}"
        raise connection.OperationalError(words) from None
    finally:
        bound.__exit__(None, None, None)


def _refuse_warnings(connection: Any, warnings: Iterable[str]) -> None:
    if words := " ".join(each.strip() for each in warnings):
        raise connection.OperationalError(f"the commit came back with a warning, so it may not be durable: {words}")


LOOK_SECONDS = 0.25
"""Seconds between two checks of the waits: a bound is exceeded by this much at most."""
IDLE_SECONDS = 10.0
"""Seconds that the thread outlives the last wait; the next wait starts a new one."""


class Wait:
    """A wait with a bound.

    :param expired: whether the socket was shut down.
    """

    __slots__ = ("deadline", "descriptor", "expired")

    def __init__(self, deadline: float, descriptor: int) -> None:
        self.deadline = deadline
        self.descriptor = descriptor
        self.expired = False

    def expire(self) -> None:
        """Shut the connection down, for every descriptor of it."""
        self.expired = True
        with suppress(OSError), socket.socket(fileno=os.dup(self.descriptor)) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """Ends waits of any number of threads that exceed their bound, from one thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[int, Wait] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    @contextmanager
    def bound(self, descriptor: int, seconds: float) -> Iterator[Wait]:
        """Shut a socket down when the block takes too long.

        :param descriptor: the socket's descriptor.
        :param seconds: the bound.
        """
        # A duplicate: the library may close its own when it wakes, and another thread's socket may then get the number.
        wait = Wait(time.monotonic() + seconds, os.dup(descriptor))
        number = next(self._numbers)
        with self._lock:
            self._waits[number] = wait
            # A forked process has no thread but the one that forked it.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="sms-ledger-watchdog", daemon=True)
                self._thread.start()
        try:
            yield wait
        finally:
            with self._lock:
                del self._waits[number]
            os.close(wait.descriptor)

    def _watch(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            with self._lock:
                for wait in self._waits.values():
                    if now > wait.deadline and not wait.expired:
                        wait.expire()
                if self._waits:
                    idle_since = now
                elif now - idle_since > IDLE_SECONDS:
                    self._thread = None
                    return


WATCHDOG = Watchdog()
"""The watchdog of this process."""
