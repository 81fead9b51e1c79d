"""Task instances in Airflow's database: whether one exists, and in Airflow 2 its state.

From Airflow 3 on a task may not read the database, and asks an API instead; a command may read it.

A module of its own, because the queries need SQL, which the layers that ask may not import.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import InputError


class TaskState(NamedTuple):
    """A task instance as Airflow 2 has it.

    :param state: of the task; None where it has none, as after a clear.
    :param job_state: of the job that runs the task; None in ``dag.test()``, where there is no job.
    """

    state: str | None
    try_number: int
    job_state: str | None


def read_task_state(*, dag_id: str, task_id: str, run_id: str, map_index: int) -> TaskState:
    """Return the state of a task instance."""
    from airflow import settings
    from airflow.jobs.job import Job
    from airflow.models.taskinstance import TaskInstance

    # Not with a session: Airflow 2 has one for the whole thread, and the task's own code is in the middle of it.
    engine: Any = settings.engine
    task: Any = TaskInstance
    query = (
        select(task.state, task.try_number, Job.state)
        .select_from(task)
        .outerjoin(Job, Job.id == task.job_id)
        .where(task.dag_id == dag_id, task.task_id == task_id, task.run_id == run_id, task.map_index == map_index)
    )
    with engine.connect() as connection:
        return TaskState(*connection.execute(query).one())


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
