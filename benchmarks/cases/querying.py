"""The memory of a task that plans the rows of a query, at two sizes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from benchmarks.airflow import Task, sqlite_ledger
from benchmarks.data import FIRST_NUMBER, NAMES
from benchmarks.figures import Figure, at_most
from benchmarks.processes import WrongError

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.airflow import Ran
    from benchmarks.bench import Bench

RATIO = 1.1
MOST_MEGABYTES = 450.0
MEGABYTE = 1_000_000
STEP = 2_654_435_761
"""A prime number, so that its multiples, modulo the number of rows, are all rows once, in no order."""
STATEMENT = f"""
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < :rows)
SELECT CAST({FIRST_NUMBER} + n * {STEP} % :rows AS TEXT) AS destination, name AS first_name, n % 50000 / 100.0 AS amount
FROM counted JOIN names ON names.id = n % {len(NAMES)}
"""  # noqa: S608 - numbers of this module


def query(bench: Bench) -> list[Figure]:
    """Plan the rows of a query in dry runs, of as many rows as the large and as the small table have."""
    rows, small_rows = bench.sizes.rows, bench.sizes.small
    names = bench.folder / f"{bench.name('names')}.db"
    write_names(names)
    small, large = (_plan(bench, names, each) for each in (small_rows, rows))
    peak, small_peak = large.peak / MEGABYTE, small.peak / MEGABYTE
    ten = f"{rows:,} rows of a query against {small_rows:,}"
    return [
        Figure(
            f"peak memory of a plan, {ten}",
            f"{peak:.0f} MB against {small_peak:.0f} MB, {peak / small_peak:.2f} x",
            peak / small_peak,
            at_most(RATIO, f"{RATIO} x"),
        ),
        Figure(
            f"peak memory of a plan, {rows:,} rows of a query",
            f"{peak:.0f} MB",
            peak,
            at_most(MOST_MEGABYTES, f"{MOST_MEGABYTES:.0f} MB"),
        ),
        Figure(
            f"time of a plan, {ten}",
            f"{large.wall:.1f} s against {small.wall:.1f} s; {large.cpu / rows * 1e6:.1f} µs CPU a row",
            large.wall,
            details={"cpu": large.cpu, "small_wall": small.wall, "small_cpu": small.cpu},
        ),
    ]


def write_names(path: Path) -> None:
    """Write the database of the query, which counts up to the number of rows and looks up each name."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        connection.executemany("INSERT INTO names VALUES (?, ?)", enumerate(NAMES))


def check(ran: Ran, rows: int) -> None:
    """Raise unless every row was planned, as one message each, and nothing was sent.

    :raises WrongError: when a row is missing, invalid or a repeat, or a request was made.
    """
    found = {name: ran.summary[name] for name in ("rows", "not_sent")}
    if found != {"rows": rows, "not_sent": rows} or ran.counters.posts:
        raise WrongError(f"the plan of a query of {rows} rows: {found}, {ran.counters.posts} requests")


def _plan(bench: Bench, names: Path, rows: int) -> Ran:
    bench.tell(f"planning {rows:,} rows of a query")
    task = Task("query", {"database": str(names), "statement": STATEMENT, "rows": rows, "campaign": "benchmark"})
    (ran,) = bench.airflows.run([task], sqlite_ledger(bench.folder / f"{bench.name('query')}.db"))
    check(ran, rows)
    return ran
