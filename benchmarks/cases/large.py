"""The cost of ten times as many rows, and of a rerun of a finished campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.airflow import sqlite_ledger
from benchmarks.bench import CONCURRENCY, LATENCY, ledger_bytes
from benchmarks.figures import Figure, at_most, median
from benchmarks.processes import WrongError

if TYPE_CHECKING:
    from benchmarks.bench import Bench

MEMORY_RATIO, TIME_RATIO = 1.1, 11.0
MOST_MEGABYTES = 450.0
RESUME_SECONDS = 8.0
MEGABYTE = 1_000_000


def large(bench: Bench) -> list[Figure]:
    """Send the large table, and compare the send with that of the small one."""
    rows, small_rows = bench.sizes.rows, bench.sizes.small
    small = [each.ran for each in bench.sqlite_rounds()]
    bench.tell(f"writing {rows:,} rows")
    task = bench.task(rows, files=8, service={"latency": LATENCY}, concurrency=CONCURRENCY)
    bench.tell(f"sending {rows:,} rows")
    path = bench.folder / f"{bench.name('large')}.db"
    ran = bench.send(task, sqlite_ledger(path), rows)
    if ran.xcom_shape != small[-1].xcom_shape:
        raise WrongError(f"XComs of {rows:,} rows: {ran.xcom_shape}; of {small_rows:,}: {small[-1].xcom_shape}")
    size = ledger_bytes(path) / MEGABYTE
    path.unlink()
    peak, small_peak = ran.peak / MEGABYTE, median([each.peak for each in small]) / MEGABYTE
    wall, small_wall = ran.wall, median([each.wall for each in small])
    ten = f"{rows:,} rows against {small_rows:,}"
    return [
        Figure(
            f"peak memory, {ten}",
            f"{peak:.0f} MB against {small_peak:.0f} MB, {peak / small_peak:.2f} x",
            peak / small_peak,
            at_most(MEMORY_RATIO, f"{MEMORY_RATIO} x"),
        ),
        Figure(
            f"peak memory, {rows:,} rows", f"{peak:.0f} MB", peak, at_most(MOST_MEGABYTES, f"{MOST_MEGABYTES:.0f} MB")
        ),
        Figure(
            f"time, {ten}",
            f"{wall:.1f} s against {small_wall:.1f} s, {wall / small_wall:.1f} x",
            wall / small_wall,
            at_most(TIME_RATIO, f"{TIME_RATIO:.0f} x"),
        ),
        Figure(
            f"XComs, {ten}",
            f"{ran.xcom_bytes} bytes against {small[-1].xcom_bytes}, the same except for digits",
            1.0,
            at_most(1.0, "the same"),
        ),
        Figure(
            f"sending rate, {rows:,} rows",
            f"{ran.rate:,.0f} messages/s, {ran.cpu / rows * 1e6:.1f} µs CPU each",
            ran.rate,
        ),
        Figure(f"ledger of {rows:,} rows that were sent, SQLite", f"{size:,.0f} MB", size),
    ]


def resume(bench: Bench) -> list[Figure]:
    """Run the finished small campaign again: in another process, as another run of the DAG."""
    rows = bench.sizes.small
    bench.sqlite_rounds()
    task = bench.task(rows, service={"latency": LATENCY}, concurrency=CONCURRENCY)
    walls = []
    for number in range(bench.sizes.runs):
        bench.tell(f"{rows:,} rows that were sent are run again, {number + 1} of {bench.sizes.runs}")
        (ran,) = bench.airflows.run([task], sqlite_ledger(bench.small_ledger))
        if ran.counters.posts or ran.summary["already_sent"] != rows:
            raise WrongError(f"a rerun: {ran.counters.posts} requests, {ran.summary['already_sent']} already sent")
        walls.append(ran.wall)
    return [
        Figure(
            f"a rerun of {rows:,} rows that were sent",
            f"{median(walls):.1f} s, no request",
            median(walls),
            at_most(RESUME_SECONDS, f"{RESUME_SECONDS:.0f} s"),
            tuple(walls),
        )
    ]
