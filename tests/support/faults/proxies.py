"""Real intermediaries between client and service, while the service or the intermediary fails.

An intermediary that repeats a request after passing it on texts people twice, and no client can prevent it. So each
POST of ours carries a number in its send options. Messages that the service took twice from one POST were repeated by
the intermediary, and are counted apart if it is configured to do that; messages that it took from two POSTs are our
fault.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import threading
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from airflow_provider_sms.sending.outcomes import Backoff
from support.faults.arena import Arena
from support.faults.haproxy import HAProxy
from support.faults.nginx import Nginx
from support.faults.origin import Origin
from support.faults.proxy import Exchange
from support.faults.proxy_cases import CLIENT_SECONDS, Scene, cases
from support.faults.stores import STORES, a_ledger
from support.faults.tries import attempt
from support.faults.varnish import Varnish
from support.faults.verdict import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sms.service.responses import SendResponse
    from support.faults.intermediary import Intermediary, Setup
    from support.faults.tries import Ended, Ledgers
    from support.faults.verdict import Sent

INTERMEDIARIES: tuple[type[Intermediary], ...] = (Nginx, HAProxy, Varnish)

REQUESTS = 3
SEEN_SECONDS = 5.0
"""Seconds within which a request in the witness must also be in the sandbox's memory."""

BACKOFF = Backoff(attempts=4, base=0.001, longest=0.001, longest_retry_after=0.001)
"""Hardly any wait, whatever ``Retry-After`` an intermediary sends."""

Play = tuple[str, int, int]
"""A case, the number of the request that meets it, and how many requests go at a time."""


class ProxiedArena(Arena):
    """An arena that tells apart what we sent twice and what an intermediary sent twice.

    :param excused: whether the intermediary is configured to repeat requests; else a repetition counts as ours.
    """

    def __init__(self, ledgers: Ledgers, *, excused: bool) -> None:
        super().__init__(ledgers, keep_alive=60.0)
        self._excused = excused
        self._numbers = itertools.count(1)

    def number(self) -> dict[str, str]:
        """Return the send options of the next POST, which hold its number."""
        return {"CostCentre": f"post {next(self._numbers)}"}

    def witnessed(self, start: int = 0) -> Counter[Sent]:
        """Count how often we sent each text to each person."""
        if not self._excused:
            return super().witnessed(start)
        return Counter({sent: len(posts) for sent, posts in self._posts(start).items()})

    def judge_all(self) -> None:
        """Judge every case at its end, and count what the intermediary repeated."""
        super().judge_all()
        if self._excused:
            self.figures += Figures(by_proxies=self.by_proxies())

    def by_proxies(self) -> int:
        """Count the messages that the intermediary repeated."""
        return sum(sum(posts.values()) - len(posts) for posts in self._posts().values())

    def _posts(self, start: int = 0) -> dict[Sent, Counter[str]]:
        """Count how often the service took each message from each POST."""
        with self._witness.open("rb") as lines:
            lines.seek(start)
            entries = [json.loads(line) for line in lines]
        end = time.monotonic() + SEEN_SECONDS
        wanted = {entry["request"] for entry in entries}
        # The sandbox writes its witness a moment before it remembers the request.
        while missing := wanted - (names := self._names()).keys():
            assert time.monotonic() < end, f"requests {missing} are in the witness, and nowhere else"
            time.sleep(0.001)
        found: defaultdict[Sent, Counter[str]] = defaultdict(Counter)
        for entry in entries:
            found[entry["destination"], entry["content"]][names[entry["request"]]] += 1
        return found

    def _names(self) -> dict[int, str]:
        # A request without a number comes from the last try, which does not use the intermediary.
        return {
            request.number: (request.send_options or {}).get("CostCentre", f"request {request.number}")
            for request in self.sandbox.state.requests
        }


QUICK = (
    "slow, taken",
    "FIN for an answer, taken",
    "RST for an answer, taken",
    "a gateway's 503, taken",
    "dies, taken, back at once",
    "stops at line of the answer, RST",
    "stops at body of the answer, FIN",
    "its own 503, not taken",
    "idle connections closed by FIN",
    "reload of the proxy in mid-request",
)
QUICK_RESENDING = "FIN for an answer, taken"
"""The case in which every intermediary that is configured to repeat requests does so."""

AT = tuple(itertools.product((1, 2, REQUESTS), (1, 2)))
"""The number of the request that meets a case, and how many requests go at a time."""


def run(ledgers: Ledgers, quick: bool) -> Figures:  # noqa: FBT001  # the common signature of all sections
    """Play cases through every installed intermediary, and name the packages that are missing.

    :param ledgers: function that opens the ledger.
    :param quick: a few cases with the default configuration, and one with a configuration that repeats requests.
    """
    for package in missing():
        sys.stderr.write(f"proxies: the package {package} is not installed, so nothing went through it\n")
    installed = [kind for kind in INTERMEDIARIES if kind.path() is not None]
    return sum((through_all(ledgers, kind, quick=quick) for kind in installed), Figures())


def missing() -> list[str]:
    """Return the names of the packages that are not installed."""
    return [kind.package for kind in INTERMEDIARIES if kind.path() is None]


def through_all(ledgers: Ledgers, kind: type[Intermediary], *, quick: bool) -> Figures:
    """Play cases through one intermediary in each of its setups."""
    total = Figures()
    for setup in quick_setups(kind) if quick else kind.setups:
        figures = through(ledgers, kind, setup, quick_plays(setup) if quick else plays(kind, setup))
        if setup.resends:
            sys.stderr.write(
                f"proxies: {kind.program}, {setup.name}: {figures.by_proxies} messages repeated by the proxy\n"
            )
        total += figures
    return total


def quick_setups(kind: type[Intermediary]) -> tuple[Setup, Setup]:
    """Return the default setup and the first one that repeats requests."""
    return kind.setups[0], next(setup for setup in kind.setups if setup.resends)


def quick_plays(setup: Setup) -> Iterator[Play]:
    """Return a few cases, each for the second request, one request at a time."""
    return ((name, 2, 1) for name in ((QUICK_RESENDING,) if setup.resends else QUICK))


def plays(kind: type[Intermediary], setup: Setup) -> Iterator[Play]:
    """Yield every case: for each request in the default setup, for one of them in the others."""
    place = kind.setups.index(setup)
    for number, name in enumerate(cases()):
        yield from ((name, *at) for at in (AT[number % 2 :: 2] if place == 0 else (AT[(number + place) % len(AT)],)))


def through(
    ledgers: Ledgers,
    kind: type[Intermediary],
    setup: Setup,
    chosen: Iterable[Play],
) -> Figures:
    """Play cases through one intermediary in one setup."""
    arena = ProxiedArena(ledgers, excused=setup.resends)
    with arena, Origin(arena.sandbox.base_url) as origin, kind(setup, origin.port) as proxy:
        scene = Scene(arena, origin, proxy, threading.Lock())
        for name, nth, concurrency in chosen:
            one(scene, name, nth, concurrency)
    return arena.figures


def one(scene: Scene, name: str, nth: int, concurrency: int = 1) -> Ended:
    """Run one case.

    :raises AssertionError: the request that should meet the case never came, or the intermediary ended.
    """
    arena, origin, proxy, _ = scene
    case = cases()[name]
    campaign = arena.campaign(4 * REQUESTS)
    posts = itertools.count(1)

    def around(post: Callable[[], SendResponse]) -> SendResponse:
        time.sleep(proxy.setup.pause)
        with scene.lock:
            origin.start()
            if case.before is not None and next(posts) == nth:
                case.before(scene)
        return post()

    if case.strike is not None:
        origin.arm(nth, lambda exchange: case.strike(exchange, scene))
    ended = attempt(
        campaign,
        concurrency=concurrency,
        base_url=proxy.url + origin.path,
        verify=str(proxy.certificate) if proxy.setup.tls else True,
        timeout=case.timeout,
        around=around,
        send_options=arena.number,
        backoff=BACKOFF,
    )
    with scene.lock:
        origin.start()
        # The request of a client that gives up at once may be dropped on the way.
        assert case.strike is None or origin.struck or case.timeout < CLIENT_SECONDS, f"{name}: no request {nth} came"
        origin.arm(0, Exchange.pass_on)
    arena.sandbox.state.set_faults([])
    assert proxy.runs, f"{proxy.program} has ended"
    name = f"{name}, request {nth}, {concurrency} at a time, through {proxy.program}, {proxy.setup.name}"
    arena.look(campaign, ended)
    arena.resume(name, campaign)
    return ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table with the figures of each intermediary and setup; return 1 if the promise was broken, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.faults.proxies", description=__doc__)
    parser.add_argument("--only", default="", help="setups whose name, behind that of the program, holds this")
    parser.add_argument("--cases", default="", help="cases whose name holds this")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    asked = parser.parse_args(arguments)
    # Imported here, because that module imports this one.
    from support.faults.table import quiet

    table = Table(
        "intermediary", "setup", "cases", "twice by us", "by the proxy", "lost", "wrong", "unknown", "seconds"
    )
    broken = 0
    for package in missing():
        table.add_row(package, "is not installed")
    for kind in INTERMEDIARIES:
        for setup in kind.setups:
            if kind.path() is None or asked.only not in f"{kind.program} {setup.name}":
                continue
            began = time.monotonic()
            chosen = [play for play in plays(kind, setup) if asked.cases in play[0]]
            with a_ledger(asked.store) as ledgers, quiet():
                figures = through(ledgers, kind, setup, chosen)
            broken += figures.broken
            wrong = figures.wrongly_accepted + figures.wrongly_not_sent
            cells = (figures.cases, figures.duplicates, figures.by_proxies, figures.lost, wrong, figures.unknown)
            table.add_row(kind.program, setup.name, *map(str, cells), f"{time.monotonic() - began:.0f}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
