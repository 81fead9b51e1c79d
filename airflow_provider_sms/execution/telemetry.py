"""What others see of a try while it runs and after: metrics, and notes of its progress."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.execution.deferral import gives_up_slot
from airflow_provider_sms.execution.ledger_progress import LedgerProgress
from airflow_provider_sms.hooks.metrics import Metrics, gauge_balance
from airflow_provider_sms.reporting.summary import COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)

PROGRESS = "sms_progress"
"""Key in Airflow's task state store of how far a task is."""
LIVE = ("accepted", "unknown", "duplicate", "already_sent")
"""Counts that only grow while a try sends; the others are known when it ends."""


UNSETTLED = ("not_sent",)
"""Counts that are told only when a try ends for good: while it waits, these messages are still to be sent."""


class Telemetry:
    """Tells Airflow's metrics, its task state store where there is one, and the ledger how a try goes. It never raises.

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
        self._conn_id = conn_id
        self._notes: LedgerProgress | None = None

    def enter(self, entry: LedgerSession, campaign: str) -> None:
        """Tell the ledger, too, from now on and until its store is closed.

        :param campaign: its name, as the ledger has it; empty where it is none, and the task will say so.
        """
        self._about["campaign"] = campaign
        if campaign:
            self._notes = LedgerProgress(entry.store, entry.claimant_id, campaign, self._conn_id, self._clock)

    def timed(self, post: Callable[[Sequence[Outgoing]], SendResponse]) -> Callable[[Sequence[Outgoing]], SendResponse]:
        """Give a post that takes its time, however it ends; it may be called in any thread."""

        def timed_post(messages: Sequence[Outgoing]) -> SendResponse:
            began = self._clock()
            try:
                return post(messages)
            finally:
                self._durations.append(self._clock() - began)

        return timed_post

    def beat(self, tally: SendCounts) -> None:
        """Give the metrics what has been added since the last time."""
        self._tell_durations()
        balance = tally.remaining_balance
        self._tell_balance(None if balance is None else float(balance))
        if not self._resumed:
            self._tell_counts({name: getattr(tally, name) for name in LIVE})
        if self._notes is not None:
            self._notes.beat()

    def saw(self, balance: Balance) -> None:
        """Tell of a balance that was read: the account's, whoever looks."""
        gauge_balance(self._conn_id, balance)
        if self._notes is not None:
            self._notes.saw(balance)

    def planned(self, plan: Plan) -> None:
        """Note in the ledger what is about to be sent."""
        if self._notes is not None:
            self._notes.planned(plan)

    @contextmanager
    def until_ended(self, summary: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Tell how the try that the block is has ended, once it has.

        :param summary: gives what the task returns.
        """
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            parked = error is not None and gives_up_slot(error)
            self.ended(summary(), parked=parked, failed=error is not None)

    def ended(self, summary: Mapping[str, Any], *, parked: bool = False, failed: bool = False) -> None:
        """Give the metrics the rest, and note how the try ended.

        :param summary: as the task returns it.
        :param parked: whether it goes on later; what it waits for is noted already.
        :param failed: whether it raised; for the ledger, since Airflow knows.
        """
        self._tell_durations()
        self._tell_balance(summary["remaining_balance"])
        self._tell_counts({name: count for name, count in summary.items() if not (parked and name in UNSETTLED)})
        if self._notes is not None:
            self._notes.beat(last=True)
        if not parked:
            self._tell_airflow("ended", {name: summary[name] for name in ("rows", *COUNTS, "requests")})
            if self._notes is not None:
                self._notes.ended("failed" if failed else "ended", summary)

    def note_sending(self, tally: SendCounts, total: int, *, paused: bool = False) -> None:
        """Note how far sending is.

        :param total: messages in all.
        :param paused: whether a person has paused the campaign.
        """
        counts = {name: getattr(tally, name) for name in LIVE}
        self._tell_airflow(
            "paused" if paused else "sending",
            {"messages": total, "done": tally.settled, **counts, "requests": tally.requests},
        )
        if self._notes is not None:
            self._notes.sending(tally, total, paused=paused)

    def note(self, state: str, figures: Mapping[str, float | str]) -> None:
        """Note that a try checks, or what it waits for, for Airflow and in the ledger.

        :param state: ``checking``, ``waiting for approval``, ``waiting for hours``, ``waiting for credit`` or
            ``waiting for an answer``; of its own accord it notes ``sending``, ``paused``, ``ended`` and, in the ledger
            only, ``failed``.
        """
        self._tell_airflow(state, figures)
        if self._notes is not None:
            self._notes.note(state, figures)

    def _tell_airflow(self, state: str, figures: Mapping[str, float | str]) -> None:
        """Leave a note where Airflow shows it while the task runs: from Airflow 3.3 on, in the task state store."""
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
