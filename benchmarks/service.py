"""A fast stand-in of the service, in a separate process: it responds after a set latency, counts, and checks nothing.

Every POST is a send request. A PUT of a latency resets the counters, and returns them as they were. What a request
costs the stand-in is among the figures of the case ``rate``, so that a stand-in that is too slow is seen.
"""

from __future__ import annotations

import http.client
import json
import socketserver
import threading
import time
from contextlib import closing
from dataclasses import asdict, dataclass

import numpy as np

from demo.processes import answer

DIGITS = 11
"""Length of every destination."""
MARK = b'"Destination":"'
"""The text before a number, as orjson writes it."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ANSWER = (
    b'{"Cost":%(n)d.0,"RemainingBalance":1000000.0,"EventId":%(id)d,"Sample":"Hi Thandi, your balance is R120.50. '
    b'Reply STOP to opt out.","CostBreakDown":[{"Quantity":%(n)d,"Cost":%(n)d.0,"Network":"Local"}],"Messages":%(n)d,'
    b'"Parts":%(n)d,"ErrorReport":{"NoNetwork":0,"Duplicates":0,"OptedOuts":0,"Faults":[]}}'
)
FIRST_EVENT = 9_007_199_254_740_993


@dataclass
class Counters:
    """Counts since the last reset.

    :param posts: send requests.
    :param messages: messages in the send requests.
    :param people: different people who were texted.
    :param rate: messages per second from the first request to the last response.
    :param cpu: CPU seconds of the stand-in.
    """

    posts: int
    messages: int
    people: int
    rate: float
    cpu: float


def reset(port: int, latency: float = 0.0) -> Counters:
    """Set the latency of a stand-in, reset its counters, and return them as they were.

    :param latency: seconds from the last byte of a request to its response.
    """
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("PUT", "/", json.dumps(latency))
        return Counters(**json.load(connection.getresponse()))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self._lock = threading.Lock()
        self._reset(0.0)

    def _reset(self, latency: float) -> None:
        self._latency, self._cpu = latency, time.process_time()
        self._posts, self._first, self._last, self._numbers = 0, 0.0, 0.0, bytearray()

    def take(self, body: bytes) -> bytes:
        """Count a send request, wait for the latency, and return the response."""
        received = time.monotonic()
        numbers = [entry[:DIGITS] for entry in body.split(MARK)[1:]]
        with self._lock:
            self._first = self._first or received
            self._posts += 1
            event = FIRST_EVENT + self._posts
            self._numbers += b"".join(numbers)
        time.sleep(max(0.0, received + self._latency - time.monotonic()))
        self._last = time.monotonic()
        return ANSWER % {b"n": len(numbers), b"id": event}

    def control(self, body: bytes) -> bytes:
        """Reset the counters, and return them as they were."""
        with self._lock:
            numbers = np.frombuffer(self._numbers, dtype=f"S{DIGITS}").astype(np.int64)
            rate = len(numbers) / max(self._last - self._first, 1e-9)
            cpu = time.process_time() - self._cpu
            counters = Counters(self._posts, len(numbers), len(np.unique(numbers)), rate, cpu)
            self._reset(json.loads(body))
        return json.dumps(asdict(counters)).encode()


class _Connection(socketserver.StreamRequestHandler):
    """One kept-alive connection, whose requests arrive one after the other."""

    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Respond to requests until the other side closes the connection."""
        while request := self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            body = self.rfile.read(length)
            told = self.server.take(body) if request.startswith(b"POST") else self.server.control(body)
            self.wfile.write(HEAD % (len(told), told))


if __name__ == "__main__":
    with _Server() as running:
        answer(running.server_address[1])
        running.serve_forever()
