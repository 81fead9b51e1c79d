"""A proxy between client and service that mistreats one exchange, byte by byte if necessary."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from urllib.parse import urlsplit

from support.forwarder import PATIENCE, Relay

PLACES = ("nothing", "line", "headers", "boundary", "body", "last byte", "end")
"""How much of a request or a response passes before the cut: up to within the first line, the headers, the empty line
after them, the body, all but a byte, all."""

_END_OF_HEAD = b"\r\n\r\n"
LINGER_NOT = struct.pack("ii", 1, 0)
"""Closing sends RST at once, socket(7)."""


def length_to(place, whole):
    """Return the number of bytes before a place."""
    line, head = whole.index(b"\r\n"), whole.index(_END_OF_HEAD) + len(_END_OF_HEAD)
    lengths = (0, line // 2, (line + head) // 2, head, (head + len(whole)) // 2, len(whole) - 1, len(whole))
    return lengths[PLACES.index(place)]


class Exchange:
    """One request and its response, in transit.

    :param client: connection to the client.
    :param service: connection to the service.
    """

    def __init__(self, client, service):
        self.client = client
        self.service = service

    def pass_on(self):
        """Forward request and response, and return them."""
        request = read_whole(self.client)
        self.service.sendall(request)
        answer = read_whole(self.service)
        self.client.sendall(answer)
        return request, answer

    def answer(self):
        """Forward the request, and return the whole response."""
        self.service.sendall(read_whole(self.client))
        return read_whole(self.service)

    def end(self, *, reset=False):
        """End both connections; that of the client with RST, or with FIN after all written bytes."""
        if reset:
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.client.close()
        self.service.close()


def read_whole(connection):
    """Return one whole request or response; an early end of stream ends the exchange.

    :raises ConnectionError: at an early end of stream.
    """
    received = b""
    while _END_OF_HEAD not in received:
        received += _some(connection)
    head, _, _ = received.partition(_END_OF_HEAD)
    lengths = (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    length = next(lengths, 0)  # a request for the balance has none
    while len(received) < len(head) + len(_END_OF_HEAD) + length:
        received += _some(connection)
    return received


def _some(connection):
    piece = connection.recv(65536)
    if not piece:
        raise ConnectionError("the other side has ended the connection")
    return piece


class Proxy(Relay):
    """Forwards all exchanges, but for those that it mistreats.

    :param base_url: base URL of the service.
    :param nth: number of the exchange to mistreat, from 1, in the order of their first bytes; None means each.
    :param mistreat: function that mistreats the exchange; it may end the connections.
    """

    def __init__(self, base_url, nth, mistreat):
        url = urlsplit(base_url)
        self._service = (str(url.hostname), int(url.port or 80))
        self._path = url.path
        self._nth = nth
        self._seen = 0
        self._mistreat = mistreat
        self.struck = False

    @property
    def base_url(self):
        """Base URL of the service behind this proxy."""
        return f"http://{self.host}:{self.port}{self._path}"

    def drop_idle(self, *, reset):
        """Close every idle connection with RST or FIN, and return once they are closed."""
        for client in self._connections:
            with suppress(OSError):
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                client.shutdown(socket.SHUT_RD)  # which sends nothing, and wakes whoever reads
        for thread in self._threads:
            thread.join(PATIENCE)
        self._connections.clear()

    def _serve(self, client):
        with client, suppress(OSError), socket.create_connection(self._service, PATIENCE) as service:
            for each in (client, service):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                each.settimeout(PATIENCE)
            while client.recv(1, socket.MSG_PEEK):
                with self._lock:
                    self._seen += 1
                    mine = self._nth in (None, self._seen)
                    self.struck |= mine
                (self._mistreat if mine else Exchange.pass_on)(Exchange(client, service))
