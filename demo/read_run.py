"""One DAG run and its XComs, read through Airflow's models, in a process that has its home."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session

from demo.processes import answer


def read_run(dag_id: str, logical_date: datetime) -> dict[str, Any]:
    """Return the states of the tasks of the one run of a date, and their XComs."""
    with create_session() as session:
        (run,) = DagRun.find(dag_id=dag_id, logical_date=logical_date, session=session)
        states = {task.task_id: str(task.state) for task in run.get_task_instances(session=session)}
        xcoms: dict[str, dict[str, Any]] = {task_id: {} for task_id in states}
        query: Any = XComModel.get_many(run_id=run.run_id, dag_ids=dag_id)
        for xcom in session.scalars(query):
            xcoms[xcom.task_id][xcom.key] = XComModel.deserialize_value(xcom)
        return {"states": states, "xcoms": xcoms}


if __name__ == "__main__":
    dag, date = json.loads(sys.argv[1])
    answer(read_run(dag, datetime.fromisoformat(date)))
