"""Breaks one I/O operation, or all from one on, below the code that performs them."""

from __future__ import annotations

import socket
import sqlite3
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

import urllib3.util.connection
from sqlalchemy.engine import make_url

from support.postgres import DRIVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Manner = Literal["fails", "gone", "late", "lost"]
"""How an operation breaks: it fails; its connection is gone before it; it is done and reported as failed; it is done
and its connection is gone after it."""

MANNERS: tuple[Manner, ...] = ("fails", "gone", "late", "lost")

_SQLITE, _POSTGRESQL = (make_url(f"{driver}://").get_dialect() for driver in ("sqlite", DRIVER))
_STATEMENTS = ("do_execute", "do_executemany", "do_execute_no_params")


class Saboteur:
    """Counts operations, and decides which of them break.

    :param at: the first operation that breaks, from 0; None breaks none.
    :param only: the only kind of operation to count; None counts all.
    :param lasting: whether all that follow break, too: of the ledger where the first one was of the ledger, of HTTP
        where it was of HTTP.
    """

    def __init__(
        self, at: int | None, manner: Manner = "fails", *, only: str | None = None, lasting: bool = False
    ) -> None:
        self.seen: list[str] = []
        self.hit: str | None = None
        self.manner = manner
        self._at = at
        self._only = only
        self._lasting = lasting
        self._lock = threading.Lock()

    def breaks(self, operation: str) -> bool:
        """Count an operation, and return whether it breaks.

        :param operation: where and what, for example ``ledger commit``.
        """
        with self._lock:
            if self._only in (None, operation):
                self.seen.append(operation)
            if self.hit is None and len(self.seen) - 1 == self._at:
                self.hit = operation
                return True
            return self._lasting and self.hit is not None and self.hit[:4] == operation[:4]

    def do(self, operation: str, work: Callable[[], Any], cut: Callable[[], object], error: Exception) -> Any:
        """Perform an operation, or break it.

        :param cut: function that ends the operation's connection.
        :param error: error that the operation raises.
        """
        if not self.breaks(operation):
            return work()
        if self.manner == "fails":
            raise error
        if self.manner == "gone":
            cut()
            # What a connection that is gone says is not for us to make up; it may say nothing, too.
            return work()
        work()
        if self.manner == "lost":
            cut()
        raise error


@contextmanager
def sabotage(saboteur: Saboteur) -> Iterator[Saboteur]:
    """Break operations of every database and every HTTP connection of this process."""
    with ExitStack() as stack:
        for dialect in (_SQLITE, _POSTGRESQL):
            for name in (*_STATEMENTS, "do_commit", "do_rollback", "do_ping"):
                stack.enter_context(patch.object(dialect, name, _working(saboteur, getattr(dialect, name), name)))
            stack.enter_context(patch.object(dialect, "connect", _connecting(saboteur, dialect.connect)))
        connect = partial(_connect, saboteur, urllib3.util.connection.create_connection)
        stack.enter_context(patch.object(urllib3.util.connection, "create_connection", connect))
        yield saboteur


def _working(saboteur: Saboteur, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a dialect's method that is given a connection or a cursor."""
    operation = "ledger " + ("statement" if name in _STATEMENTS else name.removeprefix("do_"))

    def method(dialect: Any, subject: Any, *args: Any, **kwargs: Any) -> Any:
        connection = subject.connection if name in _STATEMENTS else subject
        error = dialect.dbapi.OperationalError("broken on purpose")
        # SQLAlchemy wraps a connection in a proxy that the pool would take back.
        connection = getattr(connection, "dbapi_connection", connection)
        return saboteur.do(
            operation, lambda: original(dialect, subject, *args, **kwargs), partial(_close, connection), error
        )

    return method


def _close(connection: Any) -> None:
    """End a connection and its transaction; a closed one of SQLite alone would keep its lock as long as a cursor."""
    if isinstance(connection, sqlite3.Connection):
        connection.rollback()
    connection.close()


def _connecting(saboteur: Saboteur, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function to connect of a dialect."""

    class PragmaConnection(sqlite3.Connection):
        """A connection whose own execute, which settings are made with, can break."""

        def execute(self, *args: Any) -> sqlite3.Cursor:
            error = sqlite3.OperationalError("broken on purpose")
            cursor: sqlite3.Cursor = saboteur.do("ledger setting", partial(super().execute, *args), self.close, error)
            return cursor

    def connect(dialect: Any, *args: Any, **kwargs: Any) -> Any:
        if dialect.name == "sqlite":
            kwargs["factory"] = PragmaConnection
        made: list[Any] = []

        def work() -> Any:
            made.append(original(dialect, *args, **kwargs))
            return made[0]

        try:
            error = dialect.dbapi.OperationalError("broken on purpose")
            return saboteur.do("ledger connect", work, lambda: None, error)
        except Exception:
            for connection in made:
                connection.close()
            raise

    return connect


class _Socket(socket.socket):
    """A socket whose calls can break."""

    saboteur: Saboteur

    def sendall(self, data: Any, *args: Any) -> None:  # type: ignore[override]  # flags are not used
        work = partial(super().sendall, data, *args)
        self.saboteur.do("http send", work, self._cut, TimeoutError("broken on purpose"))

    def recv_into(self, *args: Any) -> int:  # type: ignore[override]  # as it comes
        work = partial(super().recv_into, *args)
        received: int = self.saboteur.do("http receive", work, self._cut, TimeoutError("broken on purpose"))
        return received

    def _cut(self) -> None:
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


def _connect(saboteur: Saboteur, original: Callable[..., socket.socket], *args: Any, **kwargs: Any) -> _Socket:
    def work() -> _Socket:
        plain = original(*args, **kwargs)
        timeout = plain.gettimeout()
        made.append(_Socket(plain.family, plain.type, plain.proto, fileno=plain.detach()))
        made[0].saboteur = saboteur
        made[0].settimeout(timeout)
        return made[0]

    made: list[_Socket] = []
    try:
        connected: _Socket = saboteur.do("http connect", work, lambda: None, ConnectionRefusedError(111, "on purpose"))
    except Exception:
        for connection in made:
            connection.close()
        raise
    return connected
