"""Breaks one I/O operation, or all from one on, below the code that performs them."""

from __future__ import annotations

import socket
import sqlite3
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from unittest.mock import patch

import urllib3.util.connection
from sqlalchemy.engine import make_url

from support.postgres import DRIVER

MANNERS = ("fails", "gone", "late", "lost")
"""How an operation breaks: it fails; its connection is gone before it; it is done and reported as failed; it is done
and its connection is gone after it."""

_SQLITE, _POSTGRESQL = (make_url(f"{driver}://").get_dialect() for driver in ("sqlite", DRIVER))
_STATEMENTS = ("do_execute", "do_executemany", "do_execute_no_params")


class Saboteur:
    """Counts operations, and decides which of them break.

    :param at: the first operation that breaks, from 0; None breaks none.
    :param only: the only kind of operation to count; None counts all.
    :param lasting: whether all that follow break, too: of the ledger where the first one was of the ledger, of HTTP
        where it was of HTTP.
    """

    def __init__(self, at, manner="fails", *, only=None, lasting=False):
        self.seen = []
        self.hit = None
        self.manner = manner
        self._at = at
        self._only = only
        self._lasting = lasting
        self._lock = threading.Lock()

    def breaks(self, operation):
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

    def do(self, operation, work, cut, error):
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
def sabotage(saboteur):
    """Break operations of every database and every HTTP connection of this process."""
    with ExitStack() as stack:
        for dialect in (_SQLITE, _POSTGRESQL):
            for name in (*_STATEMENTS, "do_commit", "do_rollback", "do_ping"):
                stack.enter_context(patch.object(dialect, name, _working(saboteur, getattr(dialect, name), name)))
            stack.enter_context(patch.object(dialect, "connect", _connecting(saboteur, dialect.connect)))
        connect = partial(_connect, saboteur, urllib3.util.connection.create_connection)
        stack.enter_context(patch.object(urllib3.util.connection, "create_connection", connect))
        yield saboteur


def _working(saboteur, original, name):
    """Wrap a dialect's method that is given a connection or a cursor."""
    operation = "ledger " + ("statement" if name in _STATEMENTS else name.removeprefix("do_"))

    def method(dialect, subject, *args, **kwargs):
        connection = subject.connection if name in _STATEMENTS else subject
        error = dialect.dbapi.OperationalError("broken on purpose")
        # SQLAlchemy wraps a connection in a proxy that the pool would take back.
        connection = getattr(connection, "dbapi_connection", connection)
        return saboteur.do(
            operation, lambda: original(dialect, subject, *args, **kwargs), partial(_close, connection), error
        )

    return method


def _close(connection):
    """End a connection and its transaction; a closed one of SQLite alone would keep its lock as long as a cursor."""
    if isinstance(connection, sqlite3.Connection):
        connection.rollback()
    connection.close()


def _connecting(saboteur, original):
    """Wrap the function to connect of a dialect."""

    class PragmaConnection(sqlite3.Connection):
        """A connection whose own execute, which settings are made with, can break."""

        def execute(self, *args):
            error = sqlite3.OperationalError("broken on purpose")
            return saboteur.do("ledger setting", partial(super().execute, *args), self.close, error)

    def connect(dialect, *args, **kwargs):
        if dialect.name == "sqlite":
            kwargs["factory"] = PragmaConnection
        error = dialect.dbapi.OperationalError("broken on purpose")
        return _made(saboteur, "ledger connect", lambda: original(dialect, *args, **kwargs), error)

    return connect


def _made(saboteur, operation, make, error):
    """Return a connection; one that was made and is reported as failed is closed."""
    made = []

    def work():
        made.append(make())
        return made[0]

    try:
        return saboteur.do(operation, work, lambda: None, error)
    except Exception:
        for connection in made:
            connection.close()
        raise


class _Socket(socket.socket):
    """A socket whose calls can break."""

    saboteur: Saboteur

    def sendall(self, data, *args):
        work = partial(super().sendall, data, *args)
        self.saboteur.do("http send", work, self._cut, TimeoutError("broken on purpose"))

    def recv_into(self, *args):
        work = partial(super().recv_into, *args)
        return self.saboteur.do("http receive", work, self._cut, TimeoutError("broken on purpose"))

    def _cut(self):
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


def _connect(saboteur, original, *args, **kwargs):
    def make():
        plain = original(*args, **kwargs)
        timeout = plain.gettimeout()
        made = _Socket(plain.family, plain.type, plain.proto, fileno=plain.detach())
        made.saboteur = saboteur
        made.settimeout(timeout)
        return made

    return _made(saboteur, "http connect", make, ConnectionRefusedError(111, "on purpose"))
