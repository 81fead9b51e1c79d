"""The effect of a service that is slower than the sender."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.airflow import sqlite_ledger
from benchmarks.bench import CONCURRENCY, LATENCY, check
from benchmarks.figures import Figure
from benchmarks.sizes import CHUNK

if TYPE_CHECKING:
    from benchmarks.airflow import Ran, Task
    from benchmarks.bench import Bench

ROWS_A_FILE = 10_000
MEGABYTE = 1_000_000
REFUSING_SECONDS = 4
HELD_SHARE = 0.9


def backpressure(bench: Bench) -> list[Figure]:
    """Send to a throttled service, which first delays surplus requests and then refuses them."""
    rows = bench.sizes.throttled
    refused = min(rows, bench.sizes.throttle * REFUSING_SECONDS * CHUNK)
    bench.tell(f"sending {rows:,} rows to a service that is slower than the sender")
    ledger = sqlite_ledger(bench.folder / f"{bench.name('throttled')}.db")
    tasks = [_task(bench, rows, refuse=False), _task(bench, refused, refuse=True)]
    waiting, refusing = bench.airflows.run(tasks, ledger)
    check(waiting, rows)
    check(refusing, refused)
    limit = bench.sizes.throttle
    return [
        _figure(f"{rows:,} rows, a service of {limit} requests/s that delays the others", waiting, limit),
        _figure(f"{refused:,} rows, a service of {limit} requests/s that refuses the others (429)", refusing, limit),
    ]


def _task(bench: Bench, rows: int, *, refuse: bool) -> Task:
    return bench.task(
        rows,
        files=max(4, rows // ROWS_A_FILE),
        way="watched",
        service={"latency": LATENCY, "requests_per_second": bench.sizes.throttle, "refuse": refuse},
        concurrency=CONCURRENCY,
        campaign=f"refuse {refuse}",
        control=f"http://127.0.0.1:{bench.service.port}/counters",
    )


def _figure(what: str, ran: Ran, limit: float) -> Figure:
    # When the sender was slower than the service, nothing was held back, and the figure is meaningless.
    held = "" if ran.rate > HELD_SHARE * limit * CHUNK else "; NOT held back: the sender was slower"
    peak, ahead, refused = ran.peak / MEGABYTE, ran.seen["rows_ahead"], ran.counters.refused
    return Figure(
        what,
        f"{peak:.0f} MB, files open up to {ahead:,} rows ahead, {ran.rate:,.0f} messages/s, {refused} refused{held}",
        peak,
        details={"rows_ahead": ahead, "refused": refused, "cpu": ran.cpu, "wall": ran.wall, "held_back": not held},
    )
