"""The cost of preparing messages from rows, without sending: also ``python -m benchmarks.cases.preparing``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import MESSAGE
from benchmarks.figures import Figure, at_most, median
from benchmarks.processes import WrongError, run_job
from benchmarks.sizes import CHUNK
from benchmarks.usage import cpu_seconds

if TYPE_CHECKING:
    from benchmarks.bench import Bench

MICROSECONDS = 2.5


def prepare(bench: Bench) -> list[Figure]:
    """Prepare the small table in a separate process."""
    rows = bench.sizes.small
    bench.tell(f"{rows:,} rows are prepared")
    job = {"source": bench.table(rows), "rows": rows, "runs": bench.sizes.runs}
    stages: dict[str, list[float]] = run_job(bench.folder / "preparing", "benchmarks.cases.preparing", job)
    every = [sum(row) for row in zip(*stages.values(), strict=True)]
    of_it = {
        "check": "the check and plan of every row before the first request",
        "prepare": "Parquet, validated, rendered, with keys",
        "encode": "encoded as JSON",
    }
    return [
        Figure(
            "check, plan and preparation of a row together",
            f"{median(every):.2f} µs CPU a row",
            median(every),
            at_most(MICROSECONDS, f"{MICROSECONDS} µs a row"),
            tuple(every),
            {"stages": stages},
        ),
        *(
            Figure(f"  of it: {what}", f"{median(stages[stage]):.2f} µs CPU a row", median(stages[stage]))
            for stage, what in of_it.items()
        ),
    ]


def measure(source: str, rows: int, runs: int) -> dict[str, list[float]]:
    """Return the CPU microseconds per row of each stage, for each run.

    :raises WrongError: when a row yielded no message.
    """
    import orjson

    from airflow_provider_sms.messages.prepare import Preparation
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.planning.scan import Scan
    from airflow_provider_sms.recipients.sources import open_source
    from airflow_provider_sms.stop_flag import StopFlag

    stages: dict[str, list[float]] = {"check": [], "prepare": [], "encode": []}
    for _ in range(runs + 1):
        preparation = Preparation(MESSAGE, None)
        scan, before = Scan(Prices()), cpu_seconds()
        scan.read(open_source(source), preparation, StopFlag())
        scan.close()
        checked, first, encoding = cpu_seconds(), 0, 0.0
        for batch in open_source(source).batches(preparation.columns):
            prepared = preparation.prepare(batch, first)
            first += len(prepared.keys)
            began = cpu_seconds()
            pairs = zip(prepared.contents, prepared.destinations, strict=True)
            messages = [{"Content": content, "Destination": destination} for content, destination in pairs]
            for at in range(0, len(messages), CHUNK):
                orjson.dumps({"Messages": messages[at : at + CHUNK]})
            encoding += cpu_seconds() - began
        spent = {"check": checked - before, "prepare": cpu_seconds() - checked - encoding, "encode": encoding}
        if first != rows:
            raise WrongError(f"{first} messages of {rows} rows")
        for stage, seconds in spent.items():
            stages[stage].append(seconds / rows * 1e6)
    # The first run also imports modules.
    return {stage: values[1:] for stage, values in stages.items()}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(**json.loads(Path(sys.argv[1]).read_bytes()))))
