"""The state of a task instance in the database of Airflow 2. From Airflow 3 on a task asks an API in its place.

A module of its own, because the query needs SQL, which the layer that asks may not import.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import select


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

    # Not by a session: Airflow 2 has one for the whole thread, and the task's own code is in the middle of it.
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
