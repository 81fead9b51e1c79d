"""The loading times of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import machine
from benchmarks.figures import Figure, at_most, median
from benchmarks.full_ledger import large_campaign
from benchmarks.pages import running_pages

if TYPE_CHECKING:
    from benchmarks.bench import Bench

LOOKS = 5
OPEN_SECONDS = 1.0


def pages(bench: Bench) -> list[Figure]:
    """Load the pages of ledgers with many campaigns, one of them large."""
    return [figure for store in bench.full_ledgers for figure in _opened(bench, store)]


def _opened(bench: Bench, store: str) -> list[Figure]:
    bench.tell(f"pages are opened, {store}")
    large = f"/campaigns/{large_campaign(bench.sizes.campaigns)}"
    addresses = {
        f"list of {bench.sizes.campaigns:,} campaigns": "/",
        "  those that need attention": "/?state=needs+attention",
        f"campaign of {bench.sizes.rows:,} messages": large,
        "  its requests": f"{large}/requests",
        "  its unknown requests": f"{large}/requests?state=unknown",
    }
    seconds: dict[str, list[float]] = {what: [] for what in addresses}
    additions = []
    with running_pages(bench.airflows, bench.full_ledgers[store].other) as served:
        first = {what: served.shown(path) for what, path in addresses.items()}
        for _ in range(LOOKS):
            additions.append(machine.additions())
            for what, path in addresses.items():
                seconds[what].append(served.shown(path))
    unit = median(additions)
    return [_opening(f"{what}, {store}", tuple(seconds[what]), first[what], unit) for what in addresses]


def _opening(what: str, seconds: tuple[float, ...], first: float, unit: float) -> Figure:
    number = median(seconds)
    return Figure(
        f"page: {what}",
        f"{number:.2f} s, {number / unit:.1f} x ten million additions; the first time {first:.2f} s",
        number,
        at_most(OPEN_SECONDS, f"{OPEN_SECONDS:.0f} s"),
        seconds,
        {"first": first, "additions": unit},
    )
