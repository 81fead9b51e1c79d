"""An address that forwards to a server, and that can fall silent or move, like a network or a virtual IP."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

PATIENCE = 30.0
"""Seconds after which a thread counts as stuck."""


class Forwarder:
    """Forwards connections to a server.

    :param target: a socket's path, or host and port.
    """

    def __init__(self, target):
        self._target = target
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._connections = []
        self._threads = []
        self._closed = False

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._run(self._accept)
        return self

    def __exit__(self, *_):
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.drop()
        self._flowing.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()
        assert not any(thread.is_alive() for thread in self._threads), "the forwarder did not end"

    def fall_silent(self):
        """Accept bytes and connections of both sides, but forward nothing."""
        self._flowing.clear()

    def cut(self):
        """End all connections, and take new ones, but forward nothing."""
        self.fall_silent()
        self.drop()

    def speak(self):
        """Forward all that was held back."""
        self._flowing.set()

    def lead_to(self, target):
        """Forward new connections to another server; existing ones stay."""
        self._target = target

    def drop(self):
        """End all connections."""
        with self._lock:
            ended, self._connections = self._connections, []
        for each in ended:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _run(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, name="forwarder", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with suppress(OSError):
            while not self._closed:
                client, _ = self._listener.accept()
                self._run(self._serve, client)

    def _serve(self, client):
        self._flowing.wait()
        with client:
            try:
                server = self._connect()
            except OSError:
                return
            with server:
                with self._lock:
                    if self._closed:
                        return
                    self._connections += [client, server]
                back = threading.Thread(target=self._pump, args=(server, client), name="forwarder", daemon=True)
                back.start()
                self._pump(client, server)
                back.join(PATIENCE)

    def _connect(self):
        if isinstance(self._target, (str, os.PathLike)):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._target))
            except OSError:
                server.close()
                raise
            return server
        return socket.create_connection(self._target)

    def _pump(self, source, sink):
        with suppress(OSError):
            while piece := source.recv(65536):
                self._flowing.wait()
                sink.sendall(piece)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
