"""The check whether Airflow has replaced an attempt, which notices seconds before Airflow ends the process.

An attempt that no longer counts as running in Airflow stops claiming here. Until then it is a second copy beside its
successor: each posts the messages that it claimed (:mod:`airflow_provider_sms.ledger.claims`), and waits for the
outcomes of the other one's claims (:mod:`airflow_provider_sms.sending.pending`).
"""

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
"""Seconds between two questions to Airflow, which itself notices seconds later, at its next heartbeat."""
OURS = ("running", "scheduled")
"""States of a task that goes on; in ``dag.test()`` of Airflow 2 a task is ``scheduled`` for all of its run."""
RESTARTING = "restarting"
"""Airflow 2's state of a job whose task was cleared while it ran."""


class ReplacementCheck:
    """Sets a stop flag once the task is failed, cleared, or otherwise no longer this attempt's to run. Never raises.

    It belongs in the main thread, which alone may talk to Airflow. A question that fails is no reason to stop, since
    Airflow's own heartbeat is still there. If Airflow is already at a later attempt, Airflow 2 says so; from Airflow 3
    on a task cannot see that, and sends only messages that the later attempt has not claimed, until Airflow ends it.

    :param context: of the task.
    :param stop: set when the task is over.
    :param clock: returns seconds, from any start.
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
        """Ask Airflow for the task's state, unless that was done a moment ago."""
        if self._stop.is_set() or self._due is None or self._clock() < self._due:
            return
        self._due = self._clock() + LOOK_SECONDS
        try:
            now = self._state_in_database() if self._ask is None else self._state()
        except Exception as error:  # noqa: BLE001  # nobody may be left out because Airflow did not answer
            self._due = None
            log.warning(
                "Airflow cannot be asked whether this task is still running, so it is not asked again: %s",
                type(error).__name__,
            )
            return
        if now not in OURS:
            self._stop.set()
            log.warning(
                "Airflow has this task as %s, no longer as running: nothing more is claimed, and this attempt ends "
                "once the requests in flight are recorded",
                now,
            )

    def _state(self) -> str:
        states = self._ask(
            dag_id=self._dag_id, task_ids=[self._task_id], run_ids=[self._run_id], map_index=self._map_index
        )
        name = self._task_id if self._map_index < 0 else f"{self._task_id}_{self._map_index}"
        return str(states[self._run_id][name] or "none")

    def _state_in_database(self) -> str:
        from airflow_provider_sms.hooks.task_state import read_task_state

        found = read_task_state(
            dag_id=self._dag_id, task_id=self._task_id, run_id=self._run_id, map_index=self._map_index
        )
        if found.try_number != self._try_number:
            return f"in attempt {found.try_number}"
        # A clear through Airflow 2's API is noted only in the job, which looks at its next heartbeat.
        return RESTARTING if found.job_state == RESTARTING else found.state or "none"
