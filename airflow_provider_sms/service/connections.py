"""Connections that know whether a request was begun, that end in time, and that are not reused when old.

``urllib3`` reports a failure by its type, and the type does not say whether the service may have the request:
a reset is a reset before and after the first byte. So the connection itself notes the moment. It also bounds
every wait by one deadline, since ``urllib3`` bounds each read alone: a server that drips a byte a second
would hold a request for hours. Works with ``urllib3`` 1.26 and 2.
"""

from __future__ import annotations

import io
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer
    from urllib3 import PoolManager

MAX_IDLE = 3.0
"""Seconds after which a pooled connection is not reused: below the 5 s after which common servers close
one."""

_PIECE = 16 * 1024
"""Bytes written at a time: one TLS record, since only a single record's write obeys the socket's timeout as a
whole."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as the connection that carries them sees it.

    :param deadline: when it must have ended, in seconds of ``clock``.
    :param clock: a monotonic clock, in seconds.
    :param written: whether the first byte of the request may have reached the socket.
    """

    deadline: float
    clock: Callable[[], float]
    written: bool = False

    def at_most(self, timeout: float | None) -> float:
        """Shorten a wait to what is left until the deadline.

        :param timeout: seconds; None: no bound of its own.
        :raises TimeoutError: nothing is left.
        """
        left = self.deadline - self.clock()
        if left <= 0:
            raise TimeoutError("no whole answer within the time allowed")
        return left if timeout is None else min(left, timeout)


_thread = threading.local()


@contextmanager
def watching(exchange: Exchange) -> Iterator[None]:
    """Let every connection that this thread uses report to an exchange."""
    _thread.exchange = exchange
    try:
        yield
    finally:
        del _thread.exchange


def _current() -> Exchange:
    exchange: Exchange = _thread.exchange
    return exchange


class _TimelyReader(io.RawIOBase):
    """What a socket receives, each wait bounded by the socket's timeout and by the exchange's deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._sock = sock
        self._timeout = sock.gettimeout()
        self._exchange = _current()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        wait = self._exchange.at_most(self._timeout)
        if wait != self._sock.gettimeout():
            # Setting it is a system call, and hardly ever is less left than a wait may take.
            self._sock.settimeout(wait)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        # The inner file holds the socket open: left alone, the descriptor would leak until collected.
        self._raw.close()
        super().close()


class _TimelyResponse(HTTPResponse):
    """An answer whose status line, headers and body are read in time."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        self._reading = sock
        super().__init__(self, *args, **kwargs)  # type: ignore[arg-type]  # all it asks of a socket is makefile

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Open the socket for reading, in the place of the socket's own method."""
        return io.BufferedReader(_TimelyReader(self._reading))


class WatchedConnection(HTTPConnection):
    """A connection that notes the first byte of a request, and writes none once the deadline is past."""

    response_class = _TimelyResponse
    idle_since = 0.0
    _connecting = False
    _parts: list[bytes] | None = None

    def connect(self) -> None:
        """Connect; what is written meanwhile (CONNECT to a proxy, the TLS handshake) is not the request."""
        self._connecting = True
        try:
            super().connect()
        finally:
            self._connecting = False

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Write a request in one piece, headers and body: each write is a system call, and a segment of its own."""
        parts: list[bytes] = []
        self._parts = parts
        try:
            super().request(*args, **kwargs)
        finally:
            self._parts = None
        self._write(b"".join(parts))

    def send(self, data: Any) -> None:
        """Take a part of the request.

        :param data: bytes: the only thing that a request here is made of.
        """
        if self._connecting:
            super().send(data)
        elif self._parts is None:
            self._write(data)
        else:
            self._parts.append(data)

    def _write(self, data: bytes) -> None:
        if self.sock is None:
            # Plain HTTP connects only here: a refusal must come before the note below.
            self.connect()
        exchange = _current()
        for start in range(0, len(data), _PIECE):
            self.sock.settimeout(exchange.at_most(None))
            exchange.written = True
            super().send(data[start : start + _PIECE])


class WatchedPool(HTTPConnectionPool):
    """A pool that gives out no connection that the server may be closing just now."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = super()._get_conn(timeout)
        if connection.sock is not None and _current().clock() - connection.idle_since > MAX_IDLE:
            # A server that closes while the request is on its way would make an unknown outcome of nothing.
            connection.close()
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = _current().clock()
        super()._put_conn(conn)


def _watched(pool_class: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    inner = pool_class.ConnectionCls
    connection_class = type(f"Watched{inner.__name__}", (WatchedConnection, inner), {})
    name = f"Watched{pool_class.__name__}"
    return type(name, (WatchedPool, pool_class), {"ConnectionCls": connection_class})


def watch(manager: PoolManager) -> None:
    """Make all connections of a pool manager watched ones, of whatever kind: HTTP, TLS, or through SOCKS.

    :param manager: changed in place; one that is watched stays as it is.
    """
    classes: dict[str, Any] = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: pool_class if issubclass(pool_class, WatchedPool) else _watched(pool_class)
        for scheme, pool_class in classes.items()
    }
