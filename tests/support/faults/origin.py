"""The service as an intermediary sees it: a sandbox behind a TCP layer that mistreats one request and dies on demand.

Only the layer dies, so the sandbox can still be asked what it took. A client cannot tell the difference: its
connections are reset, and new ones are refused.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from support.faults.proxy import LINGER_NOT, PATIENCE, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

POST = b"POST"


class Origin:
    """A TCP layer on one port, which stays the same when the layer is killed and started again.

    :param base_url: of the sandbox.
    """

    def __init__(self, base_url: str) -> None:
        url = urlsplit(base_url)
        self._sandbox = (str(url.hostname), int(url.port or 80))
        self.path = url.path
        self.port = 0
        self.struck = True
        self._strike: Callable[[Exchange], object] = Exchange.pass_on
        self._left = 0
        self._lock = threading.Lock()
        self._serving: dict[threading.Thread, list[socket.socket]] = {}
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        threads = list(self._serving)
        self.kill()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "the origin did not end"

    def arm(self, nth: int, strike: Callable[[Exchange], object]) -> None:
        """Choose the POST to mistreat.

        :param nth: its place among the POSTs that arrive from now on, from 1.
        :param strike: mistreats it; may end the connections.
        """
        with self._lock:
            self._left, self._strike, self.struck = nth, strike, False

    def start(self) -> None:
        """Accept connections; do nothing if the layer accepts them already."""
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self.port = self._listener.getsockname()[1]
            self._accepting = threading.Thread(target=self._accept, args=(self._listener,), name="origin", daemon=True)
            self._accepting.start()

    def kill(self) -> None:
        """Reset every connection and refuse new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            self._accepting.join(PATIENCE)
            listener.close()
        self.drop(reset=True)

    def drop(self, *, reset: bool) -> None:
        """End every connection, and return once all but the caller's own have ended.

        :param reset: whether they end with RST; else with FIN.
        """
        for thread, sockets in list(self._serving.items()):
            for each in sockets:
                with suppress(OSError):
                    if reset:
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                    each.shutdown(socket.SHUT_RD)  # which sends nothing, and wakes whoever reads
            if thread is not threading.current_thread():
                thread.join(PATIENCE)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,), name="origin", daemon=True)
                self._serving[thread] = [client]
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        me = threading.current_thread()
        try:
            with client, suppress(OSError), socket.create_connection(self._sandbox, PATIENCE) as service:
                self._serving[me].append(service)
                for each in (client, service):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    each.settimeout(PATIENCE)
                # A request for the balance is passed on and not counted.
                while begin := client.recv(len(POST), socket.MSG_PEEK | socket.MSG_WAITALL):
                    strike = self._next() if begin == POST else Exchange.pass_on
                    strike(Exchange(client, service))
        finally:
            del self._serving[me]

    def _next(self) -> Callable[[Exchange], object]:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                return self._strike
        return Exchange.pass_on
