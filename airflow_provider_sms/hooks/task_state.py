"""Whether a task instance exists in Airflow's database, for a command: a task may not read it.

A module of its own, because the errors are of SQL, which the layers that ask may not import.
"""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import InputError


def has_task_instance(*, dag_id: str, task_id: str, run_id: str, map_index: int) -> bool:
    """Return whether Airflow has a task instance, with -1 for a task that is not mapped."""
    from airflow.models.taskinstance import TaskInstance

    try:
        found = TaskInstance.get_task_instance(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    except (SQLAlchemyError, RuntimeError) as error:  # the latter where Airflow has no database
        raise InputError(
            f"Airflow's database cannot be read ({type(error).__name__}), so nothing tells whether it has this task. "
            "Nothing was done. Run the command with the configuration of the Airflow whose tasks send"
        ) from error
    return found is not None
