"""What others see of a try while it runs and after: metrics, and a note of its progress."""

from __future__ import annotations

import logging
import time
from collections import deque
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.hooks.metrics import Metrics
from airflow_provider_sms.sending.report import COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.sending.blocks import Outgoing
    from airflow_provider_sms.sending.tally import Tally
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)

PROGRESS = "sms_progress"
"""Key in Airflow's task state store of how far a task is."""
LIVE = ("accepted", "unknown", "duplicate", "already_sent")
"""Counts that only grow while a try sends; the others are known when it ends."""


UNSETTLED = ("not_sent",)
"""Counts that are told only when a try ends for good: while it waits, these messages are still to be sent."""


class Watch:
    """Tells Airflow's metrics, and its task state store where there is one, how a try goes. It never raises.

    All but what :meth:`timed` wraps belongs in the main thread, which alone may talk to Airflow.

    :param context: of the task.
    :param conn_id: the connection, for the tags.
    :param campaign: its name, for the note.
    :param counted: the summary of an earlier part of this try, which the metrics have; None where this is the first.
    :param resumed: whether the try goes on after a wait: it meets again what it has sent, so its counts are known
        only when it ends.
    :param clock: seconds, from any start.
    """

    def __init__(
        self,
        context: Context,
        conn_id: str,
        campaign: str,
        *,
        counted: Mapping[str, Any] | None = None,
        resumed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        ti = context["ti"]
        self._metrics = Metrics({"dag_id": ti.dag_id, "task_id": ti.task_id, "conn_id": conn_id})
        self._account = Metrics({"conn_id": conn_id})
        self._state: Any = context.get("task_state_store")
        self._about = {"campaign": campaign, "try_number": ti.try_number}
        self._counted = {name: 0 if counted is None or name in UNSETTLED else counted[name] for name in COUNTS}
        self._resumed = resumed
        self._clock = clock
        self._durations: deque[float] = deque()
        self._balance: float | None = None

    def timed(self, post: Callable[[Sequence[Outgoing]], SendResponse]) -> Callable[[Sequence[Outgoing]], SendResponse]:
        """Give a post that takes its time, however it ends; it may be called in any thread."""

        def timed_post(messages: Sequence[Outgoing]) -> SendResponse:
            began = self._clock()
            try:
                return post(messages)
            finally:
                self._durations.append(self._clock() - began)

        return timed_post

    def beat(self, tally: Tally) -> None:
        """Give the metrics what has been added since the last time."""
        self._tell_durations()
        balance = tally.remaining_balance
        self._tell_balance(None if balance is None else float(balance))
        if not self._resumed:
            self._tell_counts({name: getattr(tally, name) for name in LIVE})

    def ended(self, summary: Mapping[str, Any], *, parked: bool = False) -> None:
        """Give the metrics the rest, and note how the try ended.

        :param summary: as the task returns it.
        :param parked: whether it goes on later; what it waits for is noted already.
        """
        self._tell_durations()
        self._tell_balance(summary["remaining_balance"])
        self._tell_counts({name: count for name, count in summary.items() if not (parked and name in UNSETTLED)})
        if not parked:
            self.note("ended", {name: summary[name] for name in ("rows", *COUNTS, "requests")})

    def note_sending(self, tally: Tally, total: int, *, paused: bool = False) -> None:
        """Note how far sending is.

        :param total: messages in all.
        :param paused: whether a person has paused the campaign.
        """
        counts = {name: getattr(tally, name) for name in LIVE}
        self.note(
            "paused" if paused else "sending",
            {"messages": total, "done": tally.settled, **counts, "requests": tally.requests},
        )

    def note(self, state: str, figures: Mapping[str, float | str]) -> None:
        """Leave a note where Airflow shows it while the task runs: from Airflow 3.3 on, in the task state store.

        :param state: ``checking``, ``waiting for approval``, ``waiting for hours``, ``waiting for credit``,
            ``sending``, ``paused``, ``waiting for an answer`` or ``ended``.
        """
        if self._state is None:
            return
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        try:
            self._state.set(PROGRESS, {"state": state, **self._about, **figures, "updated_at": now})
        except Exception as error:  # noqa: BLE001  # nobody may be left out because a note could not be written
            self._state = None
            log.warning("Airflow does not take notes of the progress, so none follow: %s", type(error).__name__)

    def _tell_durations(self) -> None:
        while self._durations:
            self._metrics.time("request_duration", self._durations.popleft())

    def _tell_balance(self, balance: float | None) -> None:
        from airflow_provider_sms.service.responses import POST_PAID_BALANCE

        if balance is not None and balance not in (self._balance, POST_PAID_BALANCE):
            self._balance = balance
            self._account.gauge("balance", balance)

    def _tell_counts(self, counts: Mapping[str, Any]) -> None:
        for name, already in self._counted.items():
            if name in counts and (more := counts[name] - already) > 0:
                self._metrics.count(name, more)
                self._counted[name] = counts[name]
