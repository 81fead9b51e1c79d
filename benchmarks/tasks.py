"""Run tasks in this process's Airflow and measure them: ``python -m benchmarks.tasks HOME``."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.airflow import Task
from benchmarks.processes import put
from benchmarks.service import Service
from benchmarks.usage import Meter, forget_peak, peak_bytes

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

LOOK_SECONDS = 0.02


class Estimate:
    """Measures the ``execute`` of one task."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self._meter: Meter | None = None

    def before(self, _context: Any) -> None:
        """Start to measure."""
        forget_peak()
        self._meter = self._meter or Meter()

    def after(self, _context: Any, _result: Any) -> None:
        """Take the figures; the last task of a mapped one counts."""
        if self._meter is not None:
            used = self._meter.read()
            self.figures = {"cpu": used.cpu, "wall": used.wall, "peak": peak_bytes()}

    @property
    def hooks(self) -> dict[str, Any]:
        """Return the operator's arguments that measure a task."""
        return {"pre_execute": self.before, "post_execute": self.after}


def run(number: int, service: Service, task: Task) -> dict[str, Any]:
    """Run a task, and return the fields of :class:`benchmarks.airflow.Ran`."""
    import pendulum
    from airflow.sdk import DAG

    from benchmarks.ways import WAYS

    measure, began = Estimate(), time.perf_counter()
    with DAG(f"bench_{number}", schedule=None) as dag:
        WAYS[task.way](measure.hooks, **task.arguments)
    _register(dag)
    service.set(**task.service)
    finished = dag.test(logical_date=pendulum.now("UTC"))
    whole = time.perf_counter() - began
    summary, written = _xcoms(finished)
    return {
        "state": str(finished.state),
        "cpu": 0.0,
        "wall": 0.0,
        "peak": peak_bytes(),
        **measure.figures,
        "whole": whole,
        "xcom_bytes": sum(map(len, written)),
        "xcom_shape": re.sub(r'"(id|markdown)": "(?:[^"\\]|\\.)*"|\d+(\.\d+)?', "0", "\n".join(written)),
        "summary": summary,
        "counters": asdict(service.counters()),
        "distinct": service.distinct(),
    }


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


def _xcoms(finished: DagRun) -> tuple[dict[str, Any], list[str]]:
    """Return the return value of a run's task, and all of its XComs as stored in Airflow's database."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(XComModel).filter_by(dag_id=finished.dag_id, run_id=finished.run_id).order_by(XComModel.key)
        rows = list(session.scalars(query))
        written = [f"{row.key} {row.value if isinstance(row.value, str) else json.dumps(row.value)}" for row in rows]
        returned = [XComModel.deserialize_value(row) for row in rows if row.key == "return_value"]
    return (returned[0] if returned and isinstance(returned[0], dict) else {}), written


def main() -> None:
    """Run the tasks of one job after another, until the process is killed."""
    home = Path(sys.argv[1])
    (home / "dags").mkdir(exist_ok=True)
    begun = 0
    for number in itertools.count():
        path = home / f"job-{number}.json"
        while not path.exists():
            time.sleep(LOOK_SECONDS)
        job = json.loads(path.read_bytes())
        for name in [name for name in os.environ if name.startswith("AIRFLOW__SMS__")]:
            del os.environ[name]
        os.environ.update(job["ledger"])
        service = Service(job["port"])
        results = []
        for task in job["tasks"]:
            results.append(run(begun, service, Task(**task)))
            begun += 1
        put(home / f"result-{number}.json", results)


if __name__ == "__main__":
    main()
