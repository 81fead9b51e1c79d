"""Faults of a service behind a real intermediary, and of the intermediary."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.sandbox.faults import Fault
from support.faults.proxy import Exchange, length_to, read_whole

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from support.faults.arena import Arena
    from support.faults.intermediary import Intermediary
    from support.faults.origin import Origin

CLIENT_SECONDS = 5.0
SHORT_SECONDS = 0.1
"""Timeout, in seconds, of a client that gives up before the intermediary does."""
GATEWAY = b"HTTP/1.1 %d %s\r\nContent-Type: text/html\r\nContent-Length: 14\r\nRetry-After: 5\r\n\r\n<h1>Oops.</h1>"


class Scene(NamedTuple):
    """The components between client and sandbox.

    :param lock: held while one of them is being restarted: no request begins meanwhile.
    """

    arena: Arena
    origin: Origin
    proxy: Intermediary
    lock: threading.Lock


def take(exchange: Exchange, *, taken: bool) -> bytes:
    """Read the request, and return the sandbox's response to it; empty where the sandbox never gets it."""
    if taken:
        return exchange.answer()
    read_whole(exchange.client)
    return b""


def slow(exchange: Exchange, _: Scene, *, taken: bool) -> None:
    """Write no response until the intermediary has given up."""
    take(exchange, taken=taken)
    _outlast(exchange)


def end(exchange: Exchange, _: Scene, *, taken: bool, reset: bool) -> None:
    """End the connection instead of responding."""
    take(exchange, taken=taken)
    exchange.end(reset=reset)


def stop(exchange: Exchange, _: Scene, *, place: str, how: str) -> None:
    """Write part of the response, then end the connection or leave it open."""
    whole = exchange.answer()
    exchange.client.sendall(whole[: length_to(place, whole)])
    if how == "silence":
        _outlast(exchange)
    else:
        exchange.end(reset=how == "RST")


def die(exchange: Exchange, scene: Scene, *, taken: bool, at_once: bool) -> None:
    """Reset every connection, and refuse new ones until the next request or for a moment."""
    take(exchange, taken=taken)
    with scene.lock:
        scene.origin.kill()
        exchange.end(reset=True)
        if at_once:
            scene.origin.start()


def say(exchange: Exchange, _: Scene, *, status: int, taken: bool) -> None:
    """Respond as a gateway between this intermediary and the service would."""
    take(exchange, taken=taken)
    exchange.client.sendall(GATEWAY % (status, b"Oops"))


def own(exchange: Exchange, scene: Scene, *, status: int, taken: bool) -> None:
    """Have the service write an error of its own."""
    scene.arena.sandbox.state.add_faults([Fault("status", status=status, accepted=taken, retry_after="5")])
    exchange.pass_on()


def trouble(exchange: Exchange, scene: Scene, *, act: str, after: bool) -> None:
    """Reload, restart or kill the intermediary while it waits for the response, or right after it got it."""
    whole = exchange.answer()
    with scene.lock:
        if after:
            exchange.client.sendall(whole)
        getattr(scene.proxy, act)()
    if not after:
        exchange.client.sendall(whole)


def _outlast(exchange: Exchange) -> None:
    while exchange.client.recv(65536):
        pass


ACTS = ("reload", "restart", "kill")


class Case(NamedTuple):
    """One fault.

    :param strike: mistreats one request at the origin; None: every request is passed on.
    :param before: is called right before one POST of ours; None: nothing is.
    :param timeout: seconds that the client waits for a response.
    """

    strike: Callable[..., object] | None = None
    before: Callable[[Scene], object] | None = None
    timeout: float = CLIENT_SECONDS


def cases() -> dict[str, Case]:
    """Return every case by its name."""
    found: dict[str, Case] = {}
    for taken in (True, False):
        word = "taken" if taken else "not taken"
        found[f"slow, {word}"] = Case(partial(slow, taken=taken))
        found[f"slow, {word}, the client gives up first"] = Case(partial(slow, taken=taken), timeout=SHORT_SECONDS)
        for reset in (False, True):
            ending = "RST" if reset else "FIN"
            found[f"{ending} for an answer, {word}"] = Case(partial(end, taken=taken, reset=reset))
        for at_once in (True, False):
            back = "back at once" if at_once else "back later"
            found[f"dies, {word}, {back}"] = Case(partial(die, taken=taken, at_once=at_once))
        for status in (502, 503):
            found[f"a gateway's {status}, {word}"] = Case(partial(say, status=status, taken=taken))
    for status in (429, 503):
        found[f"its own {status}, not taken"] = Case(partial(own, status=status, taken=False))
    found["its own 500, taken"] = Case(partial(own, status=500, taken=True))
    for place, how in itertools.product(("line", "headers", "body", "last byte"), ("FIN", "RST", "silence")):
        found[f"stops at {place} of the answer, {how}"] = Case(partial(stop, place=place, how=how))
    for reset in (False, True):
        ending = "RST" if reset else "FIN"
        found[f"idle connections closed by {ending}"] = Case(before=partial(_drop, reset=reset))
    found["refuses"] = Case(before=_refuse)
    found["killed and started between requests"] = Case(before=_again)
    for act in ACTS:
        found[f"{act} of the proxy in mid-request"] = Case(partial(trouble, act=act, after=False))
        found[f"{act} of the proxy behind an answer"] = Case(partial(trouble, act=act, after=True))
        found[f"{act} of the proxy between requests"] = Case(before=partial(_act, act=act))
    found["nothing"] = Case()
    return found


def _drop(scene: Scene, *, reset: bool) -> None:
    scene.origin.drop(reset=reset)


def _refuse(scene: Scene) -> None:
    scene.origin.kill()


def _again(scene: Scene) -> None:
    scene.origin.kill()
    scene.origin.start()


def _act(scene: Scene, *, act: str) -> None:
    getattr(scene.proxy, act)()
