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
OURS = "running"
"""The state of a task that goes on."""


class ReplacementCheck:
    """Sets a stop flag once the task is failed, cleared, or otherwise no longer this attempt's to run. Never raises.

    It belongs in the main thread, which alone may talk to Airflow. A question that fails is no reason to stop, since
    Airflow's own heartbeat is still there. A task cannot see that Airflow is already at a later attempt: until Airflow
    ends it, it sends only messages that the later attempt has not claimed.

    :param context: of the task.
    :param stop: set when the task is over.
    :param clock: returns seconds, from any start.
    """

    def __init__(self, context: Context, stop: StopFlag, *, clock: Callable[[], float] = time.monotonic) -> None:
        ti: Any = context["ti"]
        self._ti = ti
        self._stop = stop
        self._clock = clock
        self._due: float | None = clock()

    def beat(self) -> None:
        """Ask Airflow for the task's state, unless that was done a moment ago."""
        if self._stop.is_set() or self._due is None or self._clock() < self._due:
            return
        self._due = self._clock() + LOOK_SECONDS
        try:
            now = self._state()
        except Exception as error:  # noqa: BLE001  # nobody may be left out because Airflow did not answer
            self._due = None
            log.warning(
                "Airflow cannot be asked whether this task is still running, so it is not asked again: %s",
                type(error).__name__,
            )
            return
        if now != OURS:
            self._stop.set()
            log.warning(
                "Airflow has this task as %s, no longer as running: nothing more is claimed, and this attempt ends "
                "once the requests in flight are recorded",
                now,
            )

    def _state(self) -> str:
        ti = self._ti
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
        )
        name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
        return str(states[ti.run_id][name] or "none")
