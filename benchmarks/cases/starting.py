"""The time and the memory that a small task takes, beside a task that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.airflow import Task, sqlite_ledger
from benchmarks.bench import LATENCY
from benchmarks.figures import Figure, at_most, median

if TYPE_CHECKING:
    from benchmarks.bench import Bench

SECONDS = 1.5
MEGABYTE = 1_000_000


def start(bench: Bench) -> list[Figure]:
    """Run a task without work and a task of few rows in turns, each in a fresh process."""
    rows = bench.sizes.started
    send = bench.task(rows, files=1, service={"latency": LATENCY})
    ledger = sqlite_ledger(bench.folder / f"{bench.name('start')}.db")
    bench.airflows.run([Task("nothing", {})], ledger)  # not measured: the first one reads Airflow's files from the disk
    empty, small, peaks = [], [], []
    for number in range(bench.sizes.runs):
        bench.tell(f"{rows:,} rows are sent, beside a task that does nothing, {number + 1} of {bench.sizes.runs}")
        ledger = sqlite_ledger(bench.folder / f"{bench.name('start')}.db")
        (nothing,) = bench.airflows.run([Task("nothing", {})], ledger)
        empty.append(nothing.whole)
        sent = bench.send(send, ledger, rows)
        small.append(sent.whole)
        peaks.append((sent.peak / MEGABYTE, nothing.peak / MEGABYTE))
    peak, empty_peak = (median(each) for each in zip(*peaks, strict=True))
    more = tuple(one - other for one, other in zip(small, empty, strict=True))
    return [
        Figure(
            f"a task of {rows:,} rows, beside an empty task",
            f"{median(more):.2f} s more ({median(small):.2f} s against {median(empty):.2f} s)",
            median(more),
            at_most(SECONDS, f"{SECONDS} s more"),
            more,
        ),
        Figure(
            f"peak memory of a task of {rows:,} rows, beside an empty task",
            f"{peak:.0f} MB against {empty_peak:.0f} MB",
            peak,
        ),
    ]
