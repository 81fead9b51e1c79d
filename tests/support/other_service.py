"""A service that does not speak the contract, behind the adapter of ``docs/service.md``."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def served(answer):
    """Run a server on this machine, and yield its address.

    :param answer: returns status, headers and body of the response to a path, headers and a body; None for no response.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            response = answer(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"] or 0)))
            if response is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, headers, body = response
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815  # as the library calls it

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class OtherService:
    """Another service: one message in a call, an API key in a header, ids of text.

    Its attribute ``behaves`` is for the next calls: a status without effect, or ``lost`` for a message that is taken
    without a response. ``taken`` has the number and the text of each message.
    """

    def __init__(self, key):
        self.taken = []
        self.behaves = deque()
        self._key = key

    @property
    def credit(self):
        return 100 - 1.5 * len(self.taken)

    def answer(self, path, headers, body):
        """Answer a request; see :func:`served`."""
        assert (path in ("/sms", "/credit"), headers["X-Api-Key"]) == (True, self._key)
        status, said = self._send(body) if path == "/sms" else (200, {"credit": self.credit})
        return None if status == "lost" else (status, {}, json.dumps(said).encode())

    def _send(self, body):
        behaviour = self.behaves.popleft() if self.behaves else 201
        if behaviour not in (201, "lost"):
            return behaviour, {"error": "no"}
        message = json.loads(body)
        self.taken.append((message["to"], message["text"]))
        return behaviour, {"id": f"id-{len(self.taken)}", "price": 1.5, "credit": self.credit, "parts": 1}
