"""The same table, sent in the ways that people use in Airflow without this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.airflow import Task, sqlite_ledger
from benchmarks.bench import LATENCY, check
from benchmarks.figures import Figure
from benchmarks.processes import WrongError

if TYPE_CHECKING:
    from benchmarks.bench import Bench


def peers(bench: Bench) -> list[Figure]:
    """Send one table in every way, one after the other in one process."""
    rows = bench.sizes.peers
    bench.tell(f"{rows:,} rows are sent in other ways")
    service = {"latency": LATENCY}
    source = {"source": bench.table(rows, 1)}
    tasks = {
        "BulkSmsOperator, concurrency=32": bench.task(rows, files=1, service=service, concurrency=32, campaign="wide"),
        "BulkSmsOperator as it is by default": bench.task(rows, files=1, service=service, campaign="plain"),
        "pandas and requests.post in a loop, one task": Task("loop", {**source, "url": bench.service.url}, service),
        "mapped HttpOperator, one request a task, one after another": Task("mapped", source, service),
    }
    path = bench.folder / f"{bench.name('peers')}.db"
    all_ran = bench.airflows.run(list(tasks.values()), sqlite_ledger(path))
    for ran in all_ran[:2]:
        check(ran, rows)
    for ran in all_ran[2:]:
        if (ran.counters.messages, ran.distinct) != (rows, rows):
            raise WrongError(f"a peer: {ran.counters.messages} messages to {ran.distinct} people, of {rows} rows")
    # The whole task counts: the rate since the first request would omit the preparation before it.
    whole = [rows / ran.wall for ran in all_ran]
    return [
        Figure(
            f"{rows:,} rows: {what}",
            f"{each:,.0f} messages/s of the whole task, {each / whole[0]:.2f} of ours; "
            f"{ran.rate:,.0f} from the first request",
            each,
            details={"wall": ran.wall, "cpu": ran.cpu, "rate": ran.rate},
        )
        for what, ran, each in zip(tasks, all_ran, whole, strict=True)
    ]
