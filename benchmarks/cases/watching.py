"""Whether a send is slower while people look at its pages."""

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
"""From one question of an open page to its next."""
OFTEN_SECONDS = 1.0
SHARE = 0.95

NOBODY, OPEN, OFTEN, ELSEWHERE = "nobody looks", "two pages are open", "two pages ask each second", "they ask elsewhere"
WAYS = (NOBODY, OPEN, OFTEN, ELSEWHERE)


@dataclass(frozen=True)
class Sent:
    """A send that pages were looked at beside.

    :param rate: messages a second.
    :param seconds: of each answer to the list, and of each to the campaign.
    """

    rate: float
    seconds: list[list[float]]


def polled(bench: Bench) -> list[Figure]:
    """Send with nobody looking, with the list and the campaign open, and with both asking each second, in turns.

    The fourth in turn are pages that ask a copy of the ledger each second: they take as much of the processor, and
    nothing of the ledger.
    """
    return [figure for store in bench.full_ledgers for figure in _polled(bench, store)]


def _polled(bench: Bench, store: str) -> list[Figure]:
    sent: dict[str, list[Sent]] = {way: [] for way in WAYS}
    full = bench.full_ledgers[store]
    with running_pages(bench.airflows, full.ledger) as pages, running_pages(bench.airflows, full.other) as others:
        for turn in range(bench.sizes.runs):
            # Each is first in its turn: a machine that gets slower would be taken for a page's doing.
            first = turn % len(WAYS)
            for way in WAYS[first:] + WAYS[:first]:
                bench.tell(f"{bench.sizes.polled:,} rows are sent, {store}, {way}, {turn + 1} of {bench.sizes.runs}")
                campaign = bench.name("watched")
                watcher = _watcher(bench, way, campaign, pages, others)
                with watcher.looking():
                    rate = _rate(bench, campaign, full.ledger)
                sent[way].append(Sent(rate, watcher.seconds))
    return [
        _figure(f"sending rate with list and campaign open, {store}", sent, OPEN, NOBODY),
        _figure(f"  with both asking each second, {store}", sent, OFTEN, ELSEWHERE),
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
    with_nobody = "" if against == NOBODY else f", {of_nobody:.2f} of that when nobody looks"
    asked = (median([second for each in sent[way] for second in each.seconds[page]]) for page in (0, 1))
    pages = " and ".join(f"{seconds:.2f} s" for seconds in asked)
    rate = median([each.rate for each in sent[way]])
    return Figure(
        what,
        f"{rate:,.0f} messages/s, {number:.2f} of that when {against}{with_nobody}; pages in {pages}",
        number,
        at_least(SHARE, f"{SHARE} of that when {against}"),
        ratios,
        {"of_nobody": of_nobody, "sent": {name: [asdict(each) for each in sends] for name, sends in sent.items()}},
    )


def _ratios(some: Sequence[Sent], others: Sequence[Sent]) -> tuple[float, ...]:
    return tuple(one.rate / other.rate for one, other in zip(some, others, strict=True))
