"""A service that does not speak the contract, behind the adapter of ``docs/service.md``."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def served(handler):
    """Run a server of the standard library on this machine; its address is the value."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class OtherService:
    """Another service: one message in a call, an API key in a header, ids of text.

    Its attribute ``behaves`` is for the next calls: a status without effect, or ``lost`` for a message that is taken
    without a response. ``taken`` has the number and the text of each message.

    :param key: the API key.
    """

    def __init__(self, key):
        self.taken = []
        self.behaves = deque()
        other = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                assert (self.path, self.headers["X-Api-Key"]) == ("/credit", key)
                self.respond(200, {"credit": other.credit})

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert (self.path, self.headers["X-Api-Key"]) == ("/sms", key)
                behaviour = other.behaves.popleft() if other.behaves else 201
                if behaviour not in (201, "lost"):
                    return self.respond(behaviour, {"error": "no"})
                other.taken.append((message["to"], message["text"]))
                if behaviour == "lost":
                    self.close_connection = True
                    return self.connection.shutdown(socket.SHUT_RDWR)
                taken = {"id": f"id-{len(other.taken)}", "price": 1.5, "credit": other.credit, "parts": 1}
                return self.respond(201, taken)

            def respond(self, status, body):
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.handler = Handler

    @property
    def credit(self):
        return 100 - 1.5 * len(self.taken)
