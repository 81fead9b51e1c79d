"""A fast stand-in of the service, in a separate process: it responds with a set latency, counts, and checks nothing.

``GET /counters`` returns the counters, ``GET /distinct`` how many different people were texted, and
``PUT /settings`` applies settings and resets the counters. Every POST is a send request.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

DIGITS = 11
"""Length of every destination."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ANSWER = (
    b'{"Cost":%(n)d.0,"RemainingBalance":1000000.0,"EventId":%(id)d,"Sample":"Hi Thandi, your balance is R120.50. '
    b'Reply STOP to opt out.","CostBreakDown":[{"Quantity":%(n)d,"Cost":%(n)d.0,"Network":"Local"}],"Messages":%(n)d,'
    b'"Parts":%(n)d,"ErrorReport":{"NoNetwork":0,"Duplicates":0,"OptedOuts":0,"Faults":[]}}'
)
FIRST_EVENT = 9_007_199_254_740_993
MARKS = (b'"Destination":"', b'"Destination": "')
"""The text before a number in JSON, as orjson and json write it."""


@dataclass
class Settings:
    """Settings of the responses.

    :param latency: seconds from the last byte of a request to its response.
    """

    latency: float = 0.0


@dataclass
class Counters:
    """Counts since the last change of the settings.

    :param posts: processed requests.
    :param messages: messages in the processed requests.
    :param first: when the first request was complete, in seconds of a monotonic clock.
    :param last: when the last response was written.
    :param most_in_flight: maximum number of requests in progress at once.
    :param cpu: CPU seconds of this process.
    """

    posts: int = 0
    messages: int = 0
    first: float = 0.0
    last: float = 0.0
    most_in_flight: int = 0
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        """Messages per second from the first request to the last response; 0 without requests."""
        return self.messages / (self.last - self.first) if self.last > self.first else 0.0


class Service:
    """The state of the stand-in."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reset(Settings())

    def reset(self, settings: Settings) -> None:
        """Apply settings, and reset the counters."""
        self.settings = settings
        self.counters = Counters(cpu=-time.process_time())
        self._numbers = bytearray()
        self._in_flight = 0

    def take(self, sender: Connection, body: bytearray) -> None:
        """Process a complete request."""
        now = self.loop.time()
        counters = self.counters
        counters.first = counters.first or now
        entries = body.split(MARKS[0] if MARKS[0] in body else MARKS[1])
        del entries[0]
        self._numbers += b"".join([entry[:DIGITS] for entry in entries])
        counters.posts += 1
        counters.messages += len(entries)
        self._in_flight += 1
        counters.most_in_flight = max(counters.most_in_flight, self._in_flight)
        self.loop.call_at(now + self.settings.latency, self._answer, sender, len(entries), counters.posts)

    def _answer(self, sender: Connection, messages: int, number: int) -> None:
        self._in_flight -= 1
        sender.reply(ANSWER % {b"n": messages, b"id": FIRST_EVENT + number})
        self.counters.last = self.loop.time()

    def control(self, request: bytes, body: bytes) -> bytes:
        """Return the response to a control request."""
        if request.startswith(b"PUT /settings"):
            self.reset(Settings(**json.loads(body)))
        if request.startswith(b"GET /distinct"):
            return json.dumps({"distinct": distinct(self._numbers)}).encode()
        return json.dumps({**asdict(self.counters), "cpu": self.counters.cpu + time.process_time()}).encode()


def distinct(numbers: bytes | bytearray) -> int:
    """Return how many different numbers there are.

    :param numbers: numbers of 11 digits each, concatenated.
    """
    import numpy as np

    values = np.frombuffer(numbers, dtype=f"S{DIGITS}").astype(np.int64)
    values.sort()
    return len(values) and int(np.count_nonzero(np.diff(values))) + 1


class Connection(asyncio.Protocol):
    """One kept-alive connection, whose requests arrive one after the other.

    :param service: the state that all connections share.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._received = bytearray()
        self._body_at = self._end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for responses."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect a whole request, then process it."""
        self._received += data
        if not self._end and not self._read_head():
            return
        if len(self._received) < self._end:
            return
        request, body = bytes(self._received[:20]), self._received[self._body_at :]
        self._received = bytearray()
        self._end = 0
        if request.startswith(b"POST"):
            self._service.take(self, body)
        else:
            self.reply(self._service.control(request, bytes(body)))

    def _read_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._received[:end]).lower()
        _, found, rest = head.partition(b"content-length:")
        self._body_at = end + 4
        self._end = self._body_at + (int(rest.partition(b"\r\n")[0]) if found else 0)
        return True

    def reply(self, body: bytes) -> None:
        """Write a response."""
        if not self._transport.is_closing():
            self._transport.write(HEAD % (len(body), body))


async def serve() -> None:
    """Serve on a free port of this machine, and print the port."""
    service = Service()
    server = await service.loop.create_server(lambda: Connection(service), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Serve until the process is killed."""
    # epoll rounds timeouts up to whole milliseconds, which would delay responses by up to one.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(serve())


if __name__ == "__main__":
    main()
