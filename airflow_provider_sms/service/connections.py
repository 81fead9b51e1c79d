"""Connections: opened by urllib3, then written and read here, ended in time, and not reused when in doubt.

A failure's type does not say whether the service may have the request: a reset is a reset before and after the first
byte. So connecting and writing are two calls, and an exchange records that its first byte is written. One deadline
bounds all waits of an exchange, since a server that drips a byte a second would otherwise hold a request for hours.

HTTP/1.1 does not number responses: the next bytes on a connection are the response to the next request, whatever
they were written for. If a proxy gives up on a request with a 503 and then passes the late 200 on, the messages of
the next request would count as accepted. So a connection is used again only after a 200 that was read whole with no
byte behind it, and only while no byte waits on it.

urllib3 resolves names, connects, asks proxies for tunnels, and verifies certificates; :class:`Connections` uses
parts of it that are not documented, of urllib3 2. The standard library's ``http.client`` formats requests and
parses responses. Together they take a fraction of the processor time of ``requests``' own path through a pool.
"""

from __future__ import annotations

import io
import socket
import ssl
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Any

from urllib3.util.wait import wait_for_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer
    from urllib3 import HTTPConnectionPool

MAX_IDLE = 3.0
"""Seconds after which an idle connection is not reused: below the 5 s after which common servers close one."""

MAX_RESPONSE_BYTES = 10 * 1024 * 1024
"""Bytes of the longest response that is read, 10 MiB: a send response is below 100 KB."""

_TLS_RECORD = 16 * 1024
"""Bytes written at a time over TLS: one record, since only the write of a single record obeys the socket's timeout."""

_READ_AT_ONCE = 64 * 1024
"""Bytes of a response that one read takes: after each, the thread waits for Python's lock."""


class UnaskedBytesError(Exception):
    """Bytes, or the end of the stream, came on a new connection before the request was written."""


class UnusableResponseError(Exception):
    """A response came that cannot be the one to the request."""


@dataclass(slots=True)
class Exchange:
    """One request and its response, as the connection that carries them sees them.

    :param deadline: when both must have ended, in seconds of ``clock``.
    :param clock: a monotonic clock, in seconds.
    :param written: whether the first byte of the request may have reached the socket.
    :param status: the response's status; None until its headers are read.
    :param surplus: whether bytes came beyond the response.
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

    def time_left(self, timeout: float) -> float:
        """Return a timeout in seconds, shortened to the time until the deadline.

        :raises TimeoutError: the deadline has passed.
        """
        left = self.deadline - self.clock()
        if left <= 0:
            raise TimeoutError("no whole response within the time allowed")
        return min(left, timeout)


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket, each wait bounded by a timeout and by the exchange's deadline."""

    exhausted = False

    def __init__(self, sock: socket.socket, exchange: Exchange, timeout: float) -> None:
        self._sock = sock
        self._exchange = exchange
        self._timeout = timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        if self.exhausted:
            return 0
        _set_timeout(self._sock, self._exchange.time_left(self._timeout))
        return self._sock.recv_into(buffer)


class _SurplusReader(io.BufferedReader):
    """Records, when it is closed, whether it holds bytes beyond the response: they are gone with it."""

    def __init__(self, raw: _DeadlineReader, exchange: Exchange) -> None:
        super().__init__(raw, _READ_AT_ONCE)
        self._reader = raw
        self._exchange = exchange

    def close(self) -> None:
        if not self.closed:
            self._reader.exhausted = True
            self._exchange.surplus |= bool(self.peek(1))
        super().close()


class _Response(HTTPResponse):
    """A response whose status line, headers and body are read before the deadline."""

    def __init__(self, exchange: Exchange, timeout: float, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        self._exchange = exchange
        self._reader = _DeadlineReader(sock, exchange, timeout)
        super().__init__(self, *args, **kwargs)  # type: ignore[arg-type]  # it calls makefile alone of a socket

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Open the socket for reading, in place of the socket's own method."""
        return _SurplusReader(self._reader, self._exchange)

    def begin(self) -> None:
        """Read the status line and the headers."""
        super().begin()
        self._exchange.status = self.status

    def content(self) -> bytes:
        """Return the whole body.

        :raises IncompleteRead: it broke off.
        :raises UnusableResponseError: it is longer than :data:`MAX_RESPONSE_BYTES`.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := self.read(_READ_AT_ONCE):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_RESPONSE_BYTES:
                raise UnusableResponseError(f"it is longer than {MAX_RESPONSE_BYTES} bytes")
        if self.length:
            raise IncompleteRead(b"", self.length)
        return b"".join(pieces)


class Connections:
    """The connections to one address, shared by threads.

    :param pool: opens connections: direct or through a proxy, with or without TLS.
    :param tunnel: whether a proxy is asked for a tunnel to the address, with CONNECT.
    :param connect_timeout: seconds to make a connection.
    :param timeout: seconds to wait for a response, or for its next byte.
    :param size: idle connections that are kept: the number of threads that send at once.
    """

    def __init__(
        self, pool: HTTPConnectionPool, *, tunnel: bool, connect_timeout: float, timeout: float, size: int
    ) -> None:
        self._pool = pool
        self._tunnel = tunnel
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._size = size
        self._idle: list[tuple[float, Any]] = []
        self._closed = False
        weakref.finalize(self, _close_all, self._idle)  # of a client that nobody closes

    def close(self) -> None:
        """Close the idle connections; others are closed when their exchange ends."""
        self._closed = True
        _close_all(self._idle)

    def exchange(self, method: str, request: bytes, exchange: Exchange) -> tuple[int, str | None, bytes]:
        """Write a request, and return its response.

        :param request: the whole of it.
        :returns: the status, the header ``Retry-After`` as received or None, and the body: empty for an error response
            that broke off while it was read, whose status tells enough.
        :raises UnusableResponseError: the response cannot be the one to the request.
        :raises UnaskedBytesError: the other side spoke first.
        :raises Exception: any other failure; ``exchange.written`` says whether the service may have the request.
        """
        connection = self._idle_connection(exchange) or self._open(exchange)
        now, clean = 0.0, False
        try:
            write(connection.sock, request, exchange, self._timeout)
            with _Response(exchange, self._timeout, connection.sock, method=method) as response:
                response.begin()
                if response.status < HTTPStatus.OK:
                    # The final response is still to come: the connection's next request would take it for its own.
                    raise UnusableResponseError(f"HTTP {response.status} is not a final response")
                try:
                    body = response.content()
                except Exception:
                    if response.status == HTTPStatus.OK:
                        raise
                    body = b""
            now = exchange.clock()
            clean = exchange.leaves_connection_clean and not response.will_close
            return response.status, response.getheader("Retry-After"), body
        finally:
            if clean and len(self._idle) < self._size and not self._closed:
                self._idle.append((now, connection))
            else:
                connection.close()

    def _idle_connection(self, exchange: Exchange) -> Any:
        """Return a connection that may be used again; None where there is none."""
        while self._idle:
            try:
                idle_since, connection = self._idle.pop()
            except IndexError:  # another thread took it
                break
            # A server that closes while the request is on its way makes its outcome unknown.
            if exchange.clock() - idle_since <= MAX_IDLE and not _spoke(connection.sock):
                return connection
            connection.close()
        return None

    def _open(self, exchange: Exchange) -> Any:
        """Return a new connection. Bytes written meanwhile (CONNECT, the TLS handshake) are not the request's."""
        connection: Any = self._pool._new_conn()  # noqa: SLF001 - see the top of this module
        connection.timeout = self._connect_timeout
        connection.response_class = partial(_Response, exchange, self._connect_timeout)  # of a proxy, to CONNECT
        with ExitStack() as failing:
            failing.callback(connection.close)
            self._connect(connection)
            if has_input(connection.sock):
                # These bytes would be taken for the response to this request.
                raise UnaskedBytesError("bytes came on the connection before the request was written")
            failing.pop_all()
        return connection

    def _connect(self, connection: Any) -> None:
        pool = self._pool
        if self._tunnel:
            pool._prepare_proxy(connection)  # noqa: SLF001
        pool._validate_conn(connection)  # noqa: SLF001
        if connection.sock is None:
            connection.connect()


def _close_all(idle: list[tuple[float, Any]]) -> None:
    while idle:
        idle.pop()[1].close()


def write(sock: socket.socket, request: bytes, exchange: Exchange, timeout: float) -> None:
    """Write a request, headers and body, and none of it after the deadline.

    :param sock: plain or TLS.
    :param timeout: seconds that a write may wait.
    :raises TimeoutError: the deadline has passed, or a write waited too long.
    """
    size = len(request) if type(sock) is socket.socket else _TLS_RECORD
    for start in range(0, len(request), size):
        _set_timeout(sock, exchange.time_left(timeout))
        exchange.written = True
        sock.sendall(request[start : start + size])


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


def _spoke(sock: Any) -> bool:
    """Return whether an idle connection has anything to read, even a part of a TLS record."""
    return wait_for_read(sock, timeout=0.0) or (type(sock) is not socket.socket and has_input(sock))


def _set_timeout(sock: socket.socket, seconds: float) -> None:
    if seconds != sock.gettimeout():
        # Setting it is a system call, and the deadline is hardly ever nearer than the timeout.
        sock.settimeout(seconds)
