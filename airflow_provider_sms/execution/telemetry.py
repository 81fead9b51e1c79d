"""What others see of an attempt during its run and after: lines in the log, metrics, and notes of its progress.

:mod:`airflow_provider_sms.sending.response_handler` warns in the log of each request that went wrong, and
:mod:`airflow_provider_sms.sending.stop_conditions` of pauses. Other modules log what they alone know: the sender a busy
ledger, for example, and the delivery how the send ended.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_sms.execution.ledger_progress import LedgerProgress
from airflow_provider_sms.hooks.metrics import Metrics, gauge_balance
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.reporting.summary import COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.reporting.summary import Progress
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)

LIVE = ("accepted", "unknown", "duplicate", "already_sent")
"""Counts that only grow while an attempt sends; the others are known when it ends."""
UNSETTLED = ("not_sent",)
"""Counts that are reported only when an attempt ends for good: while it waits, these messages are still to be sent."""


class Telemetry:
    """Reports an attempt to Airflow's metrics and to the ledger.

    It never raises. All of it except a post that :meth:`timed` wraps belongs in the main thread.

    :param context: of the task.
    :param conn_id: the connection, for the tags.
    :param counted: the summary of an earlier leg, which the metrics already include; None for the first leg.
    :param at_end: whether the metrics are told nothing before the attempt ends for good: a leg after a deferral of a
        task without XComs does not know what the metrics include.
    :param resumed: whether this leg follows a deferral: it meets again the messages that the attempt has sent, so its
        counts are known only when it ends.
    :param clock: returns seconds, from any start.
    """

    def __init__(
        self,
        context: Context,
        conn_id: str,
        *,
        counted: Mapping[str, Any] | None = None,
        at_end: bool = False,
        resumed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        ti = context["ti"]
        self._metrics = Metrics({"dag_id": ti.dag_id, "task_id": ti.task_id, "conn_id": conn_id})
        self._account = Metrics({"conn_id": conn_id})
        self._counted = {name: 0 if counted is None or name in UNSETTLED else counted[name] for name in COUNTS}
        self._at_end = at_end
        self._resumed = resumed
        self._clock = clock
        self._durations: deque[float] = deque()
        self._balance: float | None = None
        self._conn_id = conn_id
        self._progress: LedgerProgress | None = None

    def enter(self, session: LedgerSession, campaign: str) -> None:
        """Report to the ledger, too, from now on and until it is closed.

        :param campaign: the campaign's name, as the ledger has it; empty if the name is refused later.
        """
        if campaign:
            self._progress = LedgerProgress(session.store, session.claimant_id, campaign, self._conn_id, self._clock)

    def timed(self, post: Callable[[Sequence[Outgoing]], SendResponse]) -> Callable[[Sequence[Outgoing]], SendResponse]:
        """Return a function that posts and times the post, however it ends; it may be called in any thread."""

        def timed_post(messages: Sequence[Outgoing]) -> SendResponse:
            began = self._clock()
            try:
                return post(messages)
            finally:
                self._durations.append(self._clock() - began)

        return timed_post

    def beat(self, counts: SendCounts) -> None:
        """Report to the metrics what was added since the last call."""
        self._time_requests()
        balance = counts.remaining_balance
        self._gauge_balance(None if balance is None else float(balance))
        if not (self._resumed or self._at_end):
            self._count({name: getattr(counts, name) for name in LIVE})

    def saw(self, balance: Balance) -> None:
        """Report a balance that was read."""
        gauge_balance(self._conn_id, balance)

    def planned(self, plan: Plan) -> None:
        """Note the plan in the ledger."""
        if self._progress is not None:
            self._progress.planned(plan)

    @contextmanager
    def until_ended(
        self, summary: Callable[[], Mapping[str, Any]], left_out: Callable[[], int] = lambda: 0
    ) -> Iterator[None]:
        """Report the end of the attempt that is made in the block.

        :param summary: returns the task's result, complete or not.
        :param left_out: returns how many messages the service left out of requests that it accepted.
        """
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            deferred = isinstance(error, TaskDeferred)
            self.ended(summary(), deferred=deferred, failed=error is not None, left_out=left_out())

    def ended(
        self, summary: Mapping[str, Any], *, deferred: bool = False, failed: bool = False, left_out: int = 0
    ) -> None:
        """Report the remaining counts to the metrics, and note the end of the attempt.

        :param summary: as the task returns it.
        :param deferred: whether the attempt goes on later; the condition that it waits for is noted already.
        :param failed: whether the attempt raised, for the ledger: Airflow knows already.
        :param left_out: messages of the summary that the service left out of requests that it accepted.
        """
        self._time_requests()
        self._gauge_balance(summary["remaining_balance"])
        if not (deferred and self._at_end):
            self._count({name: count for name, count in summary.items() if not (deferred and name in UNSETTLED)})
        if self._progress is not None and not deferred:
            state = AttemptState.FAILED if failed else AttemptState.ENDED
            self._progress.ended(state, summary, left_out=left_out)

    def log_sending(self, progress: Progress, counts: SendCounts, total: int, *, paused: bool) -> None:
        """Log how far the send has got, if that has changed, and note it; no-op while the last note is fresh."""
        line = progress.line(counts.done, counts.accepted, paused=paused)
        if line is None:
            return
        if line:
            log.info("%s", line)
        self.note_sending(counts, total, paused=paused)

    def note_sending(self, counts: SendCounts, total: int, *, paused: bool = False) -> None:
        """Note the progress of the send.

        :param total: messages in all.
        :param paused: whether a person has paused the campaign.
        """
        if self._progress is not None:
            self._progress.sending(counts, total, paused=paused)

    def note(self, state: str, figures: Mapping[str, float | str]) -> None:
        """Note in the ledger that an attempt checks rows, or which condition it waits for.

        :param state: ``checking``, ``waiting for hours`` or ``waiting for credit``. The other methods note
            ``sending``, ``paused``, ``ended`` and ``failed``.
        """
        if self._progress is not None:
            self._progress.note(state, figures)

    def _time_requests(self) -> None:
        while self._durations:
            self._metrics.time("request_duration", self._durations.popleft())

    def _gauge_balance(self, balance: float | None) -> None:
        from airflow_provider_sms.service.responses import POST_PAID_BALANCE

        if balance is not None and balance not in (self._balance, POST_PAID_BALANCE):
            self._balance = balance
            self._account.gauge("balance", balance)

    def _count(self, counts: Mapping[str, Any]) -> None:
        for name, already in self._counted.items():
            if name in counts and (more := counts[name] - already) > 0:
                self._metrics.count(name, more)
                self._counted[name] = counts[name]
