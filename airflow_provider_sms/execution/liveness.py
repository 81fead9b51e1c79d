"""Noticing that Airflow no longer has a try as running, seconds before Airflow ends its process."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Between two looks. Airflow itself notices at its next heartbeat, which is seconds later."""
OURS = ("running", "scheduled")
"""The latter is what a task is for all of its run in ``dag.test()`` of Airflow 2."""
RESTARTING = "restarting"
"""What Airflow 2 calls a job whose task was cleared while it ran."""


class Liveness:
    """Sets a stop signal once the task is failed, cleared, or otherwise no longer this try's to run. It never raises.

    It belongs in the main thread, which alone may talk to Airflow. A look that fails is no reason to stop: Airflow's
    own heartbeat is still there. Where Airflow is at a later try already, Airflow 2 says so; from Airflow 3 on a task
    cannot see it, and sends only what the later try has not claimed, until Airflow ends it.

    :param context: of the task.
    :param stop: set when it is over.
    :param clock: seconds, from any start.
    """

    def __init__(self, context: Context, stop: StopFlag, *, clock: Callable[[], float] = time.monotonic) -> None:
        ti: Any = context["ti"]
        self._ask: Any = getattr(ti, "get_task_states", None)
        # Read once: in Airflow 2 these are columns, which may be read from the database anew.
        self._dag_id, self._task_id, self._run_id = ti.dag_id, ti.task_id, ti.run_id
        self._map_index, self._try_number = ti.map_index, ti.try_number
        self._stop = stop
        self._clock = clock
        self._due: float | None = clock()

    def beat(self) -> None:
        """Look, if it is time to."""
        if self._stop.is_set() or self._due is None or self._clock() < self._due:
            return
        self._due = self._clock() + LOOK_SECONDS
        try:
            now = self._state_in_database() if self._ask is None else self._state()
        except Exception as error:  # noqa: BLE001  # nobody may be left out because Airflow did not answer
            self._due = None
            log.warning(
                "Airflow does not say whether this task is still to run, so it is not asked again: %s",
                type(error).__name__,
            )
            return
        if now not in OURS:
            self._stop.set()
            log.warning(
                "Airflow has this task as %s, no longer as running: nothing more is claimed, and this try ends once "
                "what is in flight is recorded",
                now,
            )

    def _state(self) -> str:
        states = self._ask(
            dag_id=self._dag_id, task_ids=[self._task_id], run_ids=[self._run_id], map_index=self._map_index
        )
        name = self._task_id if self._map_index < 0 else f"{self._task_id}_{self._map_index}"
        return str(states[self._run_id][name] or "none")

    def _state_in_database(self) -> str:
        from airflow import settings
        from airflow.jobs.job import Job
        from airflow.models.taskinstance import TaskInstance
        from sqlalchemy import select

        # Not by a session: Airflow 2 has one for the whole thread, which the task's own code is in the middle of.
        engine: Any = settings.engine
        task: Any = TaskInstance
        query = (
            select(task.state, task.try_number, Job.state)
            .select_from(task)
            # In dag.test() a task has no job.
            .outerjoin(Job, Job.id == task.job_id)
            .where(
                task.dag_id == self._dag_id,
                task.task_id == self._task_id,
                task.run_id == self._run_id,
                task.map_index == self._map_index,
            )
        )
        with engine.connect() as connection:
            state, try_number, job_state = connection.execute(query).one()
        if try_number != self._try_number:
            return f"in try {try_number}"
        # A clear through Airflow 2's API tells the job alone, which looks at its next heartbeat.
        return RESTARTING if job_state == RESTARTING else str(state or "none")
