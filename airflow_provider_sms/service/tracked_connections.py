"""Connections that record the first byte of a request, that end in time, and that are not reused when in doubt.

``urllib3`` reports a failure by its type, and the type does not say whether the service may have the request:
a reset is a reset before and after the first byte. So the connection itself records that the first byte is written. It
also bounds every wait by one deadline, since ``urllib3`` bounds each read alone: a server that drips a byte a second
would hold a request for hours.

HTTP/1.1 does not number responses: the next bytes on a connection are the response to the next request, whatever
they were written for. If a proxy gives up on a request with a 503 and then passes the late 200 on, the messages of
the next request would count as accepted. So a connection is used again only after a 200 that was read whole with no
byte behind it, and only while no byte waits on it. Works with ``urllib3`` 2.
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
"""Seconds after which a pooled connection is not reused: below the 5 s after which common servers close one."""

_PIECE = 16 * 1024
"""Bytes written at a time: one TLS record, since only the write of a single record obeys the socket's timeout."""


class UnaskedBytesError(Exception):
    """Bytes, or an end, came on a connection before the request was written."""


@dataclass(slots=True)
class Exchange:
    """One request and its response, as the connection that carries them sees them.

    :param deadline: when both must have ended, in seconds of ``clock``.
    :param clock: a monotonic clock, in seconds.
    :param written: whether the first byte of the request may have reached the socket.
    :param status: of the response; None until its headers are read.
    :param surplus: whether more bytes came than the response.
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

    def time_left(self, timeout: float | None) -> float:
        """Return a timeout, shortened to the time until the deadline.

        :param timeout: seconds; None means no limit but the deadline.
        :raises TimeoutError: the deadline has passed.
        """
        left = self.deadline - self.clock()
        if left <= 0:
            raise TimeoutError("no whole response within the time allowed")
        return left if timeout is None else min(left, timeout)


_thread = threading.local()


@contextmanager
def tracking(exchange: Exchange) -> Iterator[None]:
    """Let every connection that this thread uses record what it does in an exchange."""
    _thread.exchange = exchange
    try:
        yield
    finally:
        del _thread.exchange


def _current() -> Exchange:
    exchange: Exchange = _thread.exchange
    return exchange


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket, each wait bounded by the socket's timeout and by the exchange's deadline."""

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
        wait = self._exchange.time_left(self._timeout)
        if wait != self._sock.gettimeout():
            # Setting it is a system call, and the deadline is hardly ever nearer than the timeout.
            self._sock.settimeout(wait)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        # The inner file holds the socket open: left alone, the descriptor would leak until collected.
        self._raw.close()
        super().close()


class _SurplusReader(io.BufferedReader):
    """Records, when it is closed, whether it holds bytes beyond the response: they are gone with it."""

    def __init__(self, raw: _DeadlineReader) -> None:
        super().__init__(raw)
        self._reader = raw
        self._exchange = _current()

    def close(self) -> None:
        if not self.closed:
            self._reader.exhausted = True
            self._exchange.surplus |= bool(self.peek(1))
        super().close()


class _DeadlineResponse(HTTPResponse):
    """A response whose status line, headers and body are read before the deadline."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        self._reading = sock
        super().__init__(self, *args, **kwargs)  # type: ignore[arg-type]  # it calls makefile alone of a socket

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Open the socket for reading, in place of the socket's own method."""
        return _SurplusReader(_DeadlineReader(self._reading))

    def begin(self) -> None:
        """Read status line and headers."""
        super().begin()
        _current().status = self.status


class TrackedConnection(HTTPConnection):
    """A connection that records the first byte of a request, and writes none once the deadline has passed."""

    response_class = _DeadlineResponse
    idle_since = 0.0
    _connecting = False
    _pieces: list[bytes] | None = None

    def connect(self) -> None:
        """Connect; bytes written meanwhile (CONNECT to a proxy, the TLS handshake) are not of the request."""
        self._connecting = True
        try:
            super().connect()
        finally:
            self._connecting = False

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Write a request in one piece, headers and body: each write is a system call, and a segment of its own."""
        pieces: list[bytes] = []
        self._pieces = pieces
        try:
            super().request(*args, **kwargs)
        finally:
            self._pieces = None
        self._write(b"".join(pieces))

    def send(self, data: Any) -> None:
        """Collect a piece of the request.

        :param data: bytes, of which alone requests are made here.
        """
        if self._connecting:
            super().send(data)
        elif self._pieces is None:
            self._write(data)
        else:
            self._pieces.append(data)

    def _write(self, data: bytes) -> None:
        if self.sock is None:
            # Plain HTTP connects only here: a refusal must come before the record below.
            self.connect()
        if has_input(self.sock):
            # These bytes would be taken for the response to this request.
            raise UnaskedBytesError("bytes came on the connection before the request was written")
        exchange = _current()
        for start in range(0, len(data), _PIECE):
            self.sock.settimeout(exchange.time_left(None))
            exchange.written = True
            super().send(data[start : start + _PIECE])


def has_input(sock: Any) -> bool:
    """Return whether a socket has anything to read, without waiting: data, an end, or an error.

    The socket is read and not polled, because polling is wrong with TLS: data that was decrypted already is in no
    socket's buffer, and bytes in the buffer need not be data (TLS 1.3 sends session tickets after the handshake). A
    byte that was there is consumed, after which the connection must be closed.

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


class TrackedPool(HTTPConnectionPool):
    """A pool that keeps only clean connections, and returns none that has bytes to read or may be closing.

    :meth:`_get_conn` and :meth:`_put_conn` alone decide when a connection is reused.
    """

    def _get_conn(self, timeout: float | None = None) -> Any:
        # urllib3 closes a connection whose socket is readable, so not even a part of a TLS record waits on this one.
        connection: Any = super()._get_conn(timeout)
        if connection.sock is not None and (
            has_input(connection.sock)
            # A server that closes while the request is on its way makes its outcome unknown.
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


def _tracked(pool_class: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    inner = pool_class.ConnectionCls
    connection_class = type(f"Tracked{inner.__name__}", (TrackedConnection, inner), {})
    name = f"Tracked{pool_class.__name__}"
    return type(name, (TrackedPool, pool_class), {"ConnectionCls": connection_class})


def track(manager: PoolManager) -> None:
    """Track all connections of a pool manager, of any kind: HTTP, TLS, or through SOCKS.

    :param manager: changed in place; one that is tracked stays as it is.
    """
    classes: dict[str, Any] = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: pool_class if issubclass(pool_class, TrackedPool) else _tracked(pool_class)
        for scheme, pool_class in classes.items()
    }
