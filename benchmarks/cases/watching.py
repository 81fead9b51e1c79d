"""The sending rate while people have the pages open."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import CONCURRENCY, LATENCY
from benchmarks.figures import Figure, at_least, median
from benchmarks.full_ledger import large_campaign
from benchmarks.pages import Asking, Watcher, running_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.bench import Bench
    from benchmarks.pages import Pages

LIST_SECONDS, CAMPAIGN_SECONDS = 10.0, 5.0
"""Seconds between refreshes of the open list and the open campaign."""
OFTEN_SECONDS = 1.0
SHARE = 0.95

NOBODY, OPEN, OFTEN, ELSEWHERE = (
    "no page is open",
    "two pages are open",
    "both refresh each second",
    "they refresh elsewhere",
)
WAYS = (NOBODY, OPEN, OFTEN, ELSEWHERE)


@dataclass(frozen=True)
class Sent:
    """A send while pages were open.

    :param rate: messages per second.
    :param seconds: seconds of each response for the list, and of each for the campaign.
    """

    rate: float
    seconds: list[list[float]]


def polled(bench: Bench) -> list[Figure]:
    """Send in turns without open pages, with list and campaign open, and with both refreshing each second.

    In a fourth turn, the pages refresh each second from a copy of the ledger: they use as much CPU, but nothing of the
    ledger.
    """
    return [figure for store in bench.full_ledgers for figure in _polled(bench, store)]


def _polled(bench: Bench, store: str) -> list[Figure]:
    sent: dict[str, list[Sent]] = {way: [] for way in WAYS}
    full = bench.full_ledgers[store]
    with running_pages(bench.airflows, full.ledger) as pages, running_pages(bench.airflows, full.other) as others:
        for turn in range(bench.sizes.runs):
            # Each way comes first in turn: otherwise a machine's slowing down would look like an effect of the pages.
            first = turn % len(WAYS)
            for way in WAYS[first:] + WAYS[:first]:
                bench.tell(f"sending {bench.sizes.polled:,} rows, {store}, {way}, {turn + 1} of {bench.sizes.runs}")
                campaign = bench.name("watched")
                watcher = _watcher(bench, way, campaign, pages, others)
                with watcher.looking():
                    rate = _rate(bench, campaign, full.ledger)
                sent[way].append(Sent(rate, watcher.seconds))
    return [
        _figure(f"sending rate with list and campaign open, {store}", sent, OPEN, NOBODY),
        _figure(f"  with both refreshing each second, {store}", sent, OFTEN, ELSEWHERE),
    ]


def _watcher(bench: Bench, way: str, campaign: str, pages: Pages, others: Pages) -> Watcher:
    if way == NOBODY:
        return Watcher(pages, [])
    if way == OPEN:
        return Watcher(pages, [Asking(LIST_SECONDS), Asking(CAMPAIGN_SECONDS, campaign)])
    if way == OFTEN:
        return Watcher(pages, [Asking(OFTEN_SECONDS), Asking(OFTEN_SECONDS, campaign)])
    there = f"campaign-{large_campaign(bench.sizes.campaigns) + 1}"
    return Watcher(others, [Asking(OFTEN_SECONDS), Asking(OFTEN_SECONDS, there)])


def _rate(bench: Bench, campaign: str, ledger: Mapping[str, str]) -> float:
    rows = bench.sizes.polled
    task = bench.task(rows, service={"latency": LATENCY}, concurrency=CONCURRENCY, campaign=campaign)
    return bench.send(task, ledger, rows).rate


def _figure(what: str, sent: Mapping[str, Sequence[Sent]], way: str, against: str) -> Figure:
    ratios = _ratios(sent[way], sent[against])
    number, of_nobody = median(ratios), median(_ratios(sent[way], sent[NOBODY]))
    with_nobody = "" if against == NOBODY else f", {of_nobody:.2f} of the rate without open pages"
    asked = (median([second for each in sent[way] for second in each.seconds[page]]) for page in (0, 1))
    pages = " and ".join(f"{seconds:.2f} s" for seconds in asked)
    rate = median([each.rate for each in sent[way]])
    return Figure(
        what,
        f"{rate:,.0f} messages/s, {number:.2f} of the rate when {against}{with_nobody}; pages in {pages}",
        number,
        at_least(SHARE, f"{SHARE} of the rate when {against}"),
        ratios,
        {"of_nobody": of_nobody, "sent": {name: [asdict(each) for each in sends] for name, sends in sent.items()}},
    )


def _ratios(some: Sequence[Sent], others: Sequence[Sent]) -> tuple[float, ...]:
    return tuple(one.rate / other.rate for one, other in zip(some, others, strict=True))
