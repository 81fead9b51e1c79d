"""The loading times of the pages, and what they cost the users of Airflow itself."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, at_most, median
from benchmarks.full_ledger import large_campaign
from benchmarks.pages import AIRFLOWS_OWN, running_pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench
    from benchmarks.pages import Look, Pages

LOOKS = 5
OPEN_SECONDS = 0.3
AT_ONCE = 40
SHARE = 1.0
OK_OR_BUSY = (200, 429)


def pages(bench: Bench) -> list[Figure]:
    """Load the pages of ledgers with many campaigns, one of them large, and 40 of them at once."""
    return [figure for store in bench.full_ledgers for figure in _of_store(bench, store)]


def _of_store(bench: Bench, store: str) -> list[Figure]:
    large = f"/campaigns/{large_campaign(bench.sizes.campaigns)}"
    addresses = {
        f"list of {bench.sizes.campaigns:,} campaigns": "/",
        f"campaign of {bench.sizes.rows:,} messages": large,
    }
    with running_pages(bench.airflows, bench.full_ledgers[store]) as served:
        bench.tell(f"pages are opened, {store}")
        figures = _opened(served, addresses, store)
        bench.tell(f"{AT_ONCE} pages are opened at once, {store}")
        return [*figures, *_at_once(served, large, store, bench.sizes.runs)]


def _opened(served: Pages, addresses: dict[str, str], store: str) -> list[Figure]:
    first = {what: served.shown(path) for what, path in addresses.items()}
    served.airflows_own()
    seconds: dict[str, list[float]] = {what: [] for what in addresses}
    own = []
    for _ in range(LOOKS):
        own.append(served.airflows_own())
        for what, path in addresses.items():
            seconds[what].append(served.shown(path))
    unit = median(own)
    return [_opening(f"{what}, {store}", tuple(seconds[what]), first[what], unit) for what in addresses]


def _opening(what: str, seconds: tuple[float, ...], first: float, unit: float) -> Figure:
    number = median(seconds)
    return Figure(
        f"page: {what}",
        f"{number:.3f} s, {number / unit:.1f} x {AIRFLOWS_OWN} ({unit:.3f} s); the first time {first:.2f} s",
        number,
        at_most(OPEN_SECONDS, f"{OPEN_SECONDS} s"),
        seconds,
        {"first": first, "airflows_own": unit},
    )


def _at_once(served: Pages, large: str, store: str, bursts: int) -> list[Figure]:
    """Return how slow Airflow's own API is while 40 users ask for a page, beside 40 of its own requests."""
    asks: dict[str, Callable[[int], Look]] = {
        AIRFLOWS_OWN: lambda user: served.request(AIRFLOWS_OWN, user),
        "the list": lambda user: served.request("/sms/", user),
        "the large campaign": lambda user: served.request(f"/sms{large}", user),
        "the list, of one user": lambda _: served.request("/sms/", 1),
    }
    slowest: dict[str, list[float]] = {what: [] for what in asks}
    codes: dict[str, list[int]] = {what: [] for what in asks}
    for _ in range(bursts):
        for what, ask in asks.items():
            seconds, statuses = _burst(served, ask)
            slowest[what].append(seconds)
            codes[what] += statuses
    own = median(slowest[AIRFLOWS_OWN])
    return [_slowing(what, store, slowest[what], own, codes[what]) for what in asks if what != AIRFLOWS_OWN]


def _burst(served: Pages, ask: Callable[[int], Look]) -> tuple[float, list[int]]:
    """Ask 40 times at once, and return the slowest response of Airflow's own API meanwhile, and the 40 statuses."""
    ready = threading.Barrier(AT_ONCE + 1)

    def one(user: int) -> int:
        ready.wait()
        return ask(user).status

    with ThreadPoolExecutor(AT_ONCE) as threads:
        asked = [threads.submit(one, user) for user in range(1, AT_ONCE + 1)]
        ready.wait()
        own = [served.airflows_own()]
        while not all(each.done() for each in asked):
            own.append(served.airflows_own())
        return max(own), [each.result() for each in asked]


def _slowing(what: str, store: str, slowest: list[float], own: float, codes: list[int]) -> Figure:
    number = median(slowest) / own
    made = sum(code == OK_OR_BUSY[0] for code in codes) / len(slowest)
    wrong = sorted({code for code in codes if code not in OK_OR_BUSY})
    return Figure(
        f"{AT_ONCE} at once: {what}, {store}",
        f"{AIRFLOWS_OWN} in {median(slowest):.2f} s at most, {number:.2f} x beside {AT_ONCE} of its own ({own:.2f} s); "
        f"{made:.0f} of {AT_ONCE} were made" + (f"; wrong: {wrong}" if wrong else ""),
        number,
        at_most(SHARE, f"{SHARE:.0f} x beside {AT_ONCE} of its own"),
        tuple(slowest),
        {"airflows_own": own},
    )
