"""The time that importing the operators adds to the parsing of a DAG file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, at_most, median
from benchmarks.processes import WrongError, python

if TYPE_CHECKING:
    from benchmarks.bench import Bench

MILLISECONDS = 50.0
CODE = """
import json, time
started = time.perf_counter(), time.process_time()
from airflow.sdk import DAG, BaseOperator, task
airflow = time.perf_counter(), time.process_time()
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
ours = time.perf_counter(), time.process_time()
print(json.dumps([airflow[0] - started[0], ours[0] - airflow[0], airflow[1] - started[1], ours[1] - airflow[1]]))
"""


def importing(bench: Bench) -> list[Figure]:
    """Import the operators after Airflow's own modules, each time in a fresh process."""
    folder = bench.folder / "importing"
    folder.mkdir(exist_ok=True)
    bench.tell("importing the operators")
    settings = {"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    taken = []
    for number in range(bench.sizes.imports + 1):
        log = folder / f"{number}.log"
        with python(folder, "-c", CODE, log=log, settings=settings) as process:
            if process.wait():
                raise WrongError(f"the operators cannot be imported: {log.read_text()[-1000:]}")
        taken.append([seconds * 1000 for seconds in json.loads(log.read_text().splitlines()[-1])])
    # The first import compiles.
    airflow, ours, airflow_cpu, ours_cpu = (tuple(column) for column in zip(*taken[1:], strict=True))
    return [
        Figure(
            "import of the operators, over Airflow's own",
            f"{median(ours):.0f} ms ({median(ours_cpu):.0f} ms CPU); Airflow's own {median(airflow):.0f} ms",
            median(ours),
            at_most(MILLISECONDS, f"{MILLISECONDS:.0f} ms"),
            ours,
            {"cpu": ours_cpu, "airflow": airflow, "airflow_cpu": airflow_cpu},
        )
    ]
