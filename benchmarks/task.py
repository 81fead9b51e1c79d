"""Run one task in a real Airflow, in this process, and measure its time, its CPU and its peak memory."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import MESSAGE
from demo.processes import answer
from demo.read_run import read_run

if TYPE_CHECKING:
    from airflow.sdk import DAG


class Meter:
    """Measures this process between the hooks of a task."""

    def start(self, _context: Any) -> None:
        """Start to measure; on Linux, the peak is forgotten, elsewhere it is that since the start of the process."""
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self, _context: Any, _result: Any) -> None:
        """Take the figures."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        self.figures = {"cpu": cpu, "wall": wall, "peak": peak_bytes()}


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Not ru_maxrss, which on Linux includes the parent's memory from before the exec.
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(kilobytes) * 1024


def run(arguments: dict[str, Any] | None) -> dict[str, Any]:
    """Run a task, and return the fields of :class:`benchmarks.bench.Ran` that do not come from the service.

    :param arguments: the operator's arguments; None for a task that does nothing.
    :raises RuntimeError: when the task fails.
    """
    import pendulum
    from airflow.sdk import DAG, task

    meter, began = Meter(), time.perf_counter()
    with DAG("benchmark", schedule=None) as dag:
        always: dict[str, Any] = {"task_id": "text", "pre_execute": meter.start, "post_execute": meter.stop}
        if arguments is None:
            task(lambda: None, **always)()
        else:
            from airflow_provider_sms.operators.sms import BulkSmsOperator

            BulkSmsOperator(message=MESSAGE, campaign="benchmark", **arguments, **always)
    _register(dag)
    moment = pendulum.now("UTC")
    state = dag.test(logical_date=moment).state
    whole = time.perf_counter() - began
    if state != "success":
        raise RuntimeError(f"the run of the task ended as {state}")
    return {**meter.figures, "whole": whole, "xcoms": read_run("benchmark", moment)["xcoms"]["text"]}


def _register(dag: DAG) -> None:
    """Register a DAG without a file in Airflow's database."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    manager = DagBundlesManager()  # type: ignore[no-untyped-call]  # Airflow's
    manager.sync_bundles_to_db()
    (bundle,) = manager.get_all_dag_bundles()
    bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
    bag.bag_dag(dag)
    sync_bag_to_db(bag, bundle.name, None)


if __name__ == "__main__":
    answer(run(json.loads(sys.argv[1])))
