"""Print one DAG run and its XComs, read through Airflow's models: a command for an environment with an Airflow home."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session


def read_run(dag_id: str, logical_date: datetime) -> dict[str, Any]:
    """Return the state of a run and of its tasks, and their XComs.

    :raises ValueError: when there is not exactly one such run.
    """
    with create_session() as session:
        (run,) = DagRun.find(dag_id=dag_id, logical_date=logical_date, session=session)
        states = {task.task_id: str(task.state) for task in run.get_task_instances(session=session)}
        xcoms: dict[str, dict[str, Any]] = {task_id: {} for task_id in states}
        query: Any = XComModel.get_many(run_id=run.run_id, dag_ids=dag_id)
        for xcom in session.scalars(query):
            xcoms[xcom.task_id][xcom.key] = XComModel.deserialize_value(xcom)
        return {"state": str(run.state), "states": states, "xcoms": xcoms}


if __name__ == "__main__":
    dag, date, target = sys.argv[1:]
    Path(target).write_text(json.dumps(read_run(dag, datetime.fromisoformat(date)), indent=1))
