"""Whether a task instance exists in Airflow's database, for a command: a task may not read it.

A module of its own, because the queries need SQL, which the layers that ask may not import.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import InputError


def has_task_instance(*, dag_id: str, task_id: str, run_id: str, map_index: int) -> bool:
    """Return whether Airflow has a task instance. Not for use in a task.

    :param map_index: -1 for a task that is not mapped.
    :raises InputError: Airflow's database cannot be read.
    """
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    task: Any = TaskInstance
    query = select(task.run_id).where(
        task.dag_id == dag_id, task.task_id == task_id, task.run_id == run_id, task.map_index == map_index
    )
    try:
        with create_session() as session:
            return session.execute(query).first() is not None
    except (SQLAlchemyError, RuntimeError) as error:  # the latter where Airflow has no database
        raise InputError(
            f"Airflow's database cannot be read ({type(error).__name__}), so nothing tells whether it has this task. "
            "Nothing was done. Run the command with the configuration of the Airflow whose tasks send"
        ) from error
