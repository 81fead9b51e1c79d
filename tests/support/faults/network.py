"""Network failures: connections that are cut at every place, slow, half-closed, or carry false responses."""

from __future__ import annotations

import itertools
import re
import socket
import time
from functools import partial

from support.faults.arena import Arena
from support.faults.proxy import PLACES, Exchange, Proxy, length_to, read_whole
from support.faults.tries import attempt

REQUESTS = 3
SHORT = 0.3
"""Timeout, in seconds, of a client whose service is too slow."""


def cut_request(exchange, place, *, reset):
    """End the connections after part of the request has been forwarded."""
    if reset and place in PLACES[:3]:
        # The client is still writing, and notices the end in mid-request.
        whole = exchange.client.recv(30) if place != "nothing" else b""
        exchange.service.sendall(whole)
    else:
        whole = read_whole(exchange.client)
        exchange.service.sendall(whole[: length_to(place, whole)])
    exchange.end(reset=reset)


def cut_answer(exchange, place, *, reset):
    """End the connections after part of the response has been returned."""
    whole = exchange.answer()
    exchange.client.sendall(whole[: length_to(place, whole)])
    exchange.end(reset=reset)


def drip(exchange, seconds):
    """Return the response byte by byte."""
    for byte in exchange.answer():
        exchange.client.sendall(bytes([byte]))
        if seconds:
            time.sleep(seconds)


def hold_back(exchange):
    """Return the response after the client has given up."""
    whole = exchange.answer()
    while exchange.client.recv(65536):
        pass
    exchange.client.sendall(whole)


def half_close_early(exchange):
    """Close the sending side of the client's connection, and still forward the request."""
    exchange.client.shutdown(socket.SHUT_WR)
    exchange.answer()
    exchange.end()


def half_close_service(exchange):
    """Close the sending side of the service's connection after the request; return the response."""
    exchange.service.sendall(read_whole(exchange.client))
    exchange.service.shutdown(socket.SHUT_WR)
    while piece := exchange.service.recv(65536):
        exchange.client.sendall(piece)
    exchange.end()


def wrong_length(exchange, replacement, *, close):
    """Return the response with another Content-Length.

    :param replacement: header value, with ``{}`` for the right number; empty removes the header.
    """
    head, boundary, body = exchange.answer().partition(b"\r\n\r\n")
    value = replacement.format(len(body), less=len(body) - 5, more=len(body) + 5)
    line = f"content-length: {value}\r\n".encode() if value else b""
    head = re.sub(rb"(?i)content-length: \d+\r\n", line, head + b"\r\n")
    exchange.client.sendall(head.removesuffix(b"\r\n") + boundary + body)
    if close:
        exchange.end()


def answer_late(exchange):
    """Return a 503 while the service processes the request, and its response to the next request on the connection."""
    whole = exchange.answer()
    exchange.client.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n")
    while exchange.client.recv(1, socket.MSG_PEEK) == b"G":
        exchange.pass_on()  # a request for the balance, between two POSTs
    if exchange.client.recv(1, socket.MSG_PEEK):
        exchange.client.sendall(whole)
    exchange.end()


def answer_and(exchange, surplus):
    """Return the response with surplus bytes; the next request on the connection is not forwarded.

    :param surplus: number of surplus bytes, taken from the same response; None repeats all of it.
    """
    whole = exchange.answer()
    exchange.client.sendall(whole + whole[:surplus])
    exchange.client.recv(1, socket.MSG_PEEK)
    exchange.end()


LENGTHS = {
    "right": "{}",
    "too long": "{more}",
    "too short": "{less}",
    "missing": "",
    "negative": "-5",
    "a word": "some",
}


def mistreatments():
    """Return all failures of an exchange, by name."""
    found = {}
    for place, reset in itertools.product(PLACES, (False, True)):
        end = "RST" if reset else "FIN"
        found[f"request cut at {place} by {end}"] = partial(cut_request, place=place, reset=reset)
        found[f"answer cut at {place} by {end}"] = partial(cut_answer, place=place, reset=reset)
    for name, replacement in LENGTHS.items():
        for close in (False, True):
            kept = "closed" if close else "kept"
            found[f"length {name}, {kept}"] = partial(wrong_length, replacement=replacement, close=close)
    found["answer byte by byte"] = partial(drip, seconds=0.0)
    found["answer byte by byte, too slow"] = partial(drip, seconds=0.05)
    found["answer too late"] = hold_back
    found["answer behind a 503"] = answer_late
    found["answer and a byte"] = partial(answer_and, surplus=1)
    found["answer twice"] = partial(answer_and, surplus=None)
    found["half-closed to the client"] = half_close_early
    found["half-closed to the service"] = half_close_service
    return found


WAITING = (
    *(f"length {name}, kept" for name in ("too long", "missing", "negative", "a word")),
    "answer byte by byte, too slow",
    "answer too late",
)
"""Failures that only the client's timeout ends."""


def run(ledgers, quick, *, reconciles=False):
    """Mistreat the first, a middle and the last request, one and two at a time; close idle connections.

    :param ledgers: function that opens the ledger.
    :param quick: True selects a middle request, one at a time.
    :param reconciles: whether lost requests are closed by what the balance proves; then it selects these, too.
    """
    with Arena(ledgers, keep_alive=60.0, reconciles=reconciles) as arena:
        few = quick or reconciles
        chosen = [*itertools.product(mistreatments(), (2,) if few else (1, 2, REQUESTS), (1,) if few else (1, 2))]
        for name, nth, concurrency in chosen[::6] if quick and reconciles else chosen:
            one(arena, name, nth, concurrency)
        for reset in (False, True):
            idle(arena, reset=reset)
    return arena.figures


def one(arena, name, nth, concurrency=1):
    """Run one case.

    :raises AssertionError: when the exchange never took place.
    """
    campaign = arena.campaign(4 * REQUESTS)
    patience = SHORT if name in WAITING else 5.0
    with Proxy(campaign.base_url, nth, mistreatments()[name]) as proxy:
        ended = attempt(campaign, concurrency=concurrency, base_url=proxy.base_url, timeout=patience)
    assert proxy.struck, f"there was no request {nth}"
    name = f"{name}, request {nth}, {concurrency} at a time"
    arena.look(campaign, ended)
    arena.resume(name, campaign)
    return ended


def idle(arena, *, reset):
    """Close the idle connection right before each request."""
    campaign = arena.campaign(4 * REQUESTS)

    def dropped(post):
        proxy.drop_idle(reset=reset)
        return post()

    with Proxy(campaign.base_url, 0, Exchange.pass_on) as proxy:
        ended = attempt(campaign, base_url=proxy.base_url, around=dropped)
    name = f"closed while idle by {'RST' if reset else 'FIN'}"
    arena.look(campaign, ended)
    arena.resume(name, campaign)
    return ended
