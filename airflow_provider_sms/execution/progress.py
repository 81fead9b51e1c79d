"""What others see of an attempt: lines in its log, Airflow's metrics, and its row in the ledger.

:mod:`airflow_provider_sms.sending.response_handler` warns in the log of each request that went wrong, and
:mod:`airflow_provider_sms.sending.stop_conditions` of pauses.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.metrics import Metrics, gauge_balance
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.ledger.progress import note_progress, of_summary
from airflow_provider_sms.reporting.summary import COUNTS, told_by_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
"""Seconds between two lines in the log, and between two notes in the ledger."""
FIGURES = ("accepted", "unknown", "duplicate", "already_sent", "requests")
"""The counts that the ledger has while an attempt sends; at its end it has the summary."""


class Progress:
    """Reports an attempt, in the main thread. It never raises, and no send depends on it.

    :param context: of the task.
    :param conn_id: the connection to send with.
    :param clock: returns seconds, from any start.
    """

    def __init__(self, context: Context, conn_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        ti = context["ti"]
        self._metrics = Metrics({"dag_id": ti.dag_id, "task_id": ti.task_id, "conn_id": conn_id})
        self._account = Metrics({"conn_id": conn_id})
        self._conn_id = conn_id
        self._clock = clock
        self._session: LedgerSession | None = None
        self._campaign = ""
        self._warned = False
        self._durations: deque[float] = deque()
        self._balance: float | None = None
        self._counts: SendCounts | None = None
        self._total = 0
        self._began = self._noted = 0.0
        self._accepted_before = self._accepted_counted = 0
        self._logged: tuple[int, bool] | None = None

    def enter(self, session: LedgerSession, campaign: str) -> None:
        """Report to the ledger, too, from now on and until it is closed.

        :param campaign: the campaign's name, as the ledger has it; empty if the name is refused later.
        """
        if campaign:
            self._session, self._campaign = session, campaign

    def saw(self, balance: Balance) -> None:
        """Report a balance that was read."""
        gauge_balance(self._conn_id, balance)

    def planned(self, plan: Plan) -> None:
        """Note the plan."""
        as_json = plan.as_json()
        self.note(AttemptState.CHECKING, plan=as_json, total=as_json["valid"], invalid=sum(as_json["invalid"].values()))

    def begin(self, counts: SendCounts, total: int) -> None:
        """Note that sending begins.

        :param counts: of the send, with what earlier legs of the attempt have sent.
        :param total: messages in all.
        """
        self._counts, self._total = counts, total
        self._began = self._noted = self._clock()
        self._accepted_before = self._accepted_counted = counts.accepted
        self._note_sending(counts, paused=False)

    def timed(self, post: Callable[[Sequence[Outgoing]], SendResponse]) -> Callable[[Sequence[Outgoing]], SendResponse]:
        """Return a function that posts and times the post, however it ends; it may be called in any thread."""

        def timed_post(messages: Sequence[Outgoing]) -> SendResponse:
            began = self._clock()
            try:
                return post(messages)
            finally:
                self._durations.append(self._clock() - began)

        return timed_post

    def beat(self, *, paused: bool) -> None:
        """Report to the metrics what was added since the last call; every few seconds to the log and the ledger, too.

        :param paused: whether a person has paused the campaign.
        """
        self._emit()
        counts, now = self._counts, self._clock()
        if counts is None or now - self._noted < EVERY_SECONDS:
            return
        self._noted = now
        if self._logged != (counts.done, paused):
            self._logged = counts.done, paused
            log.info("%s", self._line(counts, paused=paused))
        self._note_sending(counts, paused=paused)

    @contextmanager
    def until_ended(self, summary: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Report the end of the attempt that is made in the block.

        :param summary: returns the task's result, complete or not.
        """
        from airflow.providers.common.compat.sdk import TaskDeferred

        state: AttemptState | None = AttemptState.ENDED
        try:
            yield
        except TaskDeferred:
            state = None  # what it waits for is noted already
            raise
        except BaseException:
            state = AttemptState.FAILED
            raise
        finally:
            self._emit()
            if state is not None:
                self.ended(state, summary())

    def ended(self, state: AttemptState, summary: Mapping[str, Any]) -> None:
        """Report the end of the attempt: the metrics get the counts that are final only now."""
        for name in COUNTS:
            if name != "accepted":
                self._metrics.count(name, summary[name])
        if not summary["rows"]:
            # No row was checked: zeros must not replace the totals of earlier notes.
            self.note(state, of_summary(summary))
            return
        total = summary["rows"] - summary["invalid"]
        # Messages that the service left out stay claimed by the accepted request: no attempt sends them.
        not_sent = summary["not_sent"] - summary["left_out"]
        self.note(
            state,
            of_summary(summary),
            total=total,
            done=total - not_sent,
            not_sent=not_sent,
            invalid=summary["invalid"],
            rate=self._rate,
        )

    def note(self, state: str, figures: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Note a state of the attempt in the ledger.

        :param figures: more figures about that state.
        :param columns: as for :func:`~airflow_provider_sms.ledger.progress.note_progress`; once the attempt sends, its
            totals are added.
        """
        if self._session is None:
            return
        if self._counts is not None:
            columns = {"total": self._total, "done": self._counts.done, **columns}
            # Also while it sends or waits: readers see the networks then, and a killed attempt notes nothing more.
            figures = {**of_summary(told_by_service(self._counts)), **(figures or {})}
        store, claimant_id = self._session.store, self._session.claimant_id
        try:
            note_progress(store, self._campaign, claimant_id, state, conn_id=self._conn_id, figures=figures, **columns)
        except Exception as error:  # noqa: BLE001  # nobody may be left out because a note could not be written
            if not self._warned:
                log.warning("The ledger does not take notes of the progress now: %s", describe(error))
            self._warned = True

    def _note_sending(self, counts: SendCounts, *, paused: bool) -> None:
        figures = {name: getattr(counts, name) for name in FIGURES}
        not_sent = counts.not_sent - counts.partial
        if paused:
            self.note(AttemptState.PAUSED, figures, not_sent=not_sent)
        else:
            self.note(AttemptState.SENDING, figures, not_sent=not_sent, rate=self._rate)

    @property
    def _rate(self) -> float | None:
        """The messages that the service took, a second; None before the first one."""
        if self._counts is None:
            return None
        accepted, seconds = self._counts.accepted - self._accepted_before, self._clock() - self._began
        return accepted / seconds if accepted > 0 and seconds > 0 else None

    def _line(self, counts: SendCounts, *, paused: bool) -> str:
        of_all = f"{counts.done} of {self._total} {by_count(self._total, 'message')} done"
        if paused:
            return f"{of_all}, paused"
        rate = self._rate
        left = f"{(self._total - counts.done) / rate:.0f} s left" if rate else "no estimate yet"
        return f"{of_all}, {rate or 0:.0f} a second, {left}"

    def _emit(self) -> None:
        """Report to the metrics what was added: the durations of requests, what was accepted, and the balance."""
        from airflow_provider_sms.service.responses import POST_PAID_BALANCE

        while self._durations:
            self._metrics.time("request_duration", self._durations.popleft())
        if (counts := self._counts) is None:
            return
        self._metrics.count("accepted", counts.accepted - self._accepted_counted)
        self._accepted_counted = counts.accepted
        balance = None if counts.remaining_balance is None else float(counts.remaining_balance)
        if balance is not None and balance not in (self._balance, POST_PAID_BALANCE):
            self._balance = balance
            self._account.gauge("balance", balance)
