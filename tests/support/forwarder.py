"""An address that forwards to a server, and that can fall silent or move, like a network or a virtual IP."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

PATIENCE = 30.0
"""Seconds after which a thread counts as stuck."""


class Relay:
    """An address on this machine, each of whose connections a thread serves. Leaving the context ends them all."""

    def __enter__(self):
        self._lock = threading.Lock()
        self._connections = []
        self._threads = []
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._accepting = threading.Thread(target=self._accept, name="relay", daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_):
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(PATIENCE)
        self._listener.close()
        self.drop()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads), "the relay did not end"

    def drop(self):
        """End all connections."""
        with self._lock:
            ended, self._connections = self._connections, []
        for each in ended:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    self._connections.append(client)
                self._threads.append(threading.Thread(target=self._serve, args=(client,), name="relay", daemon=True))
                self._threads[-1].start()


class Forwarder(Relay):
    """Forwards connections to a server, whose address is a socket's path, or host and port."""

    def __init__(self, target):
        self._target = target
        self._flowing = threading.Event()
        self._flowing.set()

    def __exit__(self, *error):
        self.drop()
        self._flowing.set()
        super().__exit__(*error)

    def fall_silent(self):
        """Accept bytes and connections of both sides, but forward nothing."""
        self._flowing.clear()

    def speak(self):
        """Forward all that was held back."""
        self._flowing.set()

    def lead_to(self, target):
        """Forward new connections to another server; existing ones stay."""
        self._target = target

    def _serve(self, client):
        self._flowing.wait()
        with client, suppress(OSError), self._connect() as server:
            with self._lock:
                if self._closed:
                    return
                self._connections.append(server)
            back = threading.Thread(target=self._pump, args=(server, client), name="relay", daemon=True)
            back.start()
            self._pump(client, server)
            back.join(PATIENCE)

    def _connect(self):
        if not isinstance(self._target, (str, os.PathLike)):
            return socket.create_connection(self._target)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._target))
        except OSError:
            server.close()
            raise
        return server

    def _pump(self, source, sink):
        with suppress(OSError):
            while piece := source.recv(65536):
                self._flowing.wait()
                sink.sendall(piece)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
