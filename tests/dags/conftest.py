from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.airflow import everything_logged, load_dags, run_dag, stored_xcoms, sync_dags

DAGS = Path(__file__).parents[2] / "dags"


@dataclass
class DagRan:
    """What a DAG run left behind.

    :param xcoms: task → key → XCom.
    :param mapped: the same of mapped tasks: task → key → XComs, in the order of their indexes.
    """

    state: str
    xcoms: dict[str, dict[str, Any]]
    mapped: dict[str, dict[str, list[Any]]]
    log: str


@pytest.fixture(scope="session")
def bag(airflow_home):
    """The example DAGs, as Airflow loads them."""
    bag = load_dags(DAGS)
    sync_dags(bag)
    return bag


@pytest.fixture
def run_example(bag, sms_default, ledger_path):
    """Run an example against the sandbox, with a ledger of this test's own; ``change`` may alter the DAG before."""

    def run(dag_id, logical_date, *, change=lambda dag: None, **params):
        # Read anew: tasks that run in this process leave the run's params in the DAG.
        read = load_dags(DAGS, bag.dags[dag_id].fileloc)
        change(read.dags[dag_id])
        with everything_logged() as output:
            finished = run_dag(read.dags[dag_id], logical_date, params)
        ran = DagRan(str(finished.state), {}, {}, output.getvalue())
        for xcom, value in stored_xcoms(dag_id=dag_id, run_id=finished.run_id):
            if xcom.map_index < 0:
                ran.xcoms.setdefault(xcom.task_id, {})[xcom.key] = value
            else:
                ran.mapped.setdefault(xcom.task_id, {}).setdefault(xcom.key, []).append(value)
        return ran

    return run
