"""Connections that know whether a request was begun, that end in time, and that are not reused when in doubt.

``urllib3`` reports a failure by its type, and the type does not say whether the service may have the request:
a reset is a reset before and after the first byte. So the connection itself notes the moment. It also bounds
every wait by one deadline, since ``urllib3`` bounds each read alone: a server that drips a byte a second
would hold a request for hours.

HTTP/1.1 does not number responses: the next bytes on a connection are the response to the next request, whatever
they were written for. A proxy that gave up on a request, said 503, and then passes the late 200 on, has the next
request's people called accepted. So a connection is used again only after a 200 that was read whole with no byte
behind it, and only while nothing waits on it. Works with ``urllib3`` 1.26 and 2.
"""

from __future__ import annotations

import io
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
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


class UnaskedBytesError(Exception):
    """Bytes, or an end, came on a connection before the request was written."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as the connection that carries them sees it.

    :param deadline: when it must have ended, in seconds of ``clock``.
    :param clock: a monotonic clock, in seconds.
    :param written: whether the first byte of the request may have reached the socket.
    :param status: of the response; None until its headers are read.
    :param surplus: whether more came than the response.
    """

    deadline: float
    clock: Callable[[], float]
    written: bool = False
    status: int | None = None
    surplus: bool = False

    @property
    def leaves_connection_clean(self) -> bool:
        """Whether the next bytes on the connection can only be the response to the next request."""
        return self.status == HTTPStatus.OK and not self.surplus

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

    exhausted = False

    def __init__(self, sock: socket.socket) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._sock = sock
        self._timeout = sock.gettimeout()
        self._exchange = _current()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        if self.exhausted:
            return 0
        wait = self._exchange.at_most(self._timeout)
        if wait != self._sock.gettimeout():
            # Setting it is a system call, and hardly ever is less left than a wait may take.
            self._sock.settimeout(wait)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        # The inner file holds the socket open: left alone, the descriptor would leak until collected.
        self._raw.close()
        super().close()


class _NotingReader(io.BufferedReader):
    """Notes, when it is closed, what it holds beyond the response: with the reader these bytes are gone."""

    def __init__(self, raw: _TimelyReader) -> None:
        super().__init__(raw)
        self._timely = raw
        self._exchange = _current()

    def close(self) -> None:
        if not self.closed:
            self._timely.exhausted = True
            self._exchange.surplus |= bool(self.peek(1))
        super().close()


class _TimelyResponse(HTTPResponse):
    """An answer whose status line, headers and body are read in time."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        self._reading = sock
        super().__init__(self, *args, **kwargs)  # type: ignore[arg-type]  # all it asks of a socket is makefile

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Open the socket for reading, in the place of the socket's own method."""
        return _NotingReader(_TimelyReader(self._reading))

    def begin(self) -> None:
        """Read status line and headers."""
        super().begin()
        _current().status = self.status


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
        if has_input(self.sock):
            # Whatever it is, it would be taken for the response to this request.
            raise UnaskedBytesError("bytes came on the connection before the request was written")
        exchange = _current()
        for start in range(0, len(data), _PIECE):
            self.sock.settimeout(exchange.at_most(None))
            exchange.written = True
            super().send(data[start : start + _PIECE])


def has_input(sock: Any) -> bool:
    """Return whether a socket has something to read, without waiting: data, an end, or an error.

    The socket is read and not polled, because TLS answers no other question right: data that was decrypted already is
    in no socket's buffer, and what is there need not be data (TLS 1.3 sends session tickets after the handshake). A
    byte that was there is consumed: the connection is of no more use then.

    :param sock: a connected socket, plain or TLS; it does not block afterwards.
    """
    sock.settimeout(0.0)
    try:
        sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError, TimeoutError):
        return False
    except OSError:
        return True
    return True


class WatchedPool(HTTPConnectionPool):
    """A pool that keeps only clean connections, and gives out none that has spoken, or may be closing, meanwhile."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        # urllib3 closes a connection whose socket is readable, so not even a part of a TLS record waits on this one.
        connection: Any = super()._get_conn(timeout)
        if connection.sock is not None and (
            has_input(connection.sock)
            # A server that closes while the request is on its way would make an unknown outcome of nothing.
            or _current().clock() - connection.idle_since > MAX_IDLE
        ):
            connection.close()
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            exchange = _current()
            if not exchange.leaves_connection_clean:
                conn.close()
            conn.idle_since = exchange.clock()
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
