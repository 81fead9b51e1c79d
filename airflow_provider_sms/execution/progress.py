"""What others see of an attempt: lines in its log, Airflow's metrics, and its row in the ledger."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_sms.execution.errors import describe
from airflow_provider_sms.formatting import at_least, by_count, counted
from airflow_provider_sms.hooks.metrics import Metrics, gauge_balance
from airflow_provider_sms.ledger.attempts import note_progress
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.reporting.row_counts import COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from decimal import Decimal

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.sending.sender import Sender
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
"""Seconds between two lines in the log, and between two notes in the ledger."""


class Progress:
    """Reports an attempt, in the main thread. It never raises, and no send depends on it."""

    def __init__(
        self,
        context: Context,
        conn_id: str,
        store: LedgerBackend,
        claimant_id: int,
        campaign: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        ti = context["ti"]
        self._metrics = Metrics({"dag_id": ti.dag_id, "task_id": ti.task_id, "conn_id": conn_id})
        self._conn_id = conn_id
        self._store = store
        self._claimant_id = claimant_id
        self._campaign = campaign
        self._clock = clock
        self._warned = False
        self._account = Metrics({"conn_id": conn_id})
        self._balance: Decimal | None = None
        self._is_prepaid = False
        self.sender: Sender | None = None
        """None until the attempt sends."""
        self._total = self._done = self._counted = 0
        self._began = self._noted = 0.0
        self._logged: tuple[int, bool] | None = None
        self.summary: dict[str, Any] | None = None
        """What has become of the messages; None until they are checked."""

    def balance_read(self, balance: Balance) -> Balance:
        """Set the gauge to a balance that was just read, and return the balance."""
        gauge_balance(self._conn_id, balance)
        self._is_prepaid = not balance.post_paid
        return balance

    def planned(self, plan: Plan) -> None:
        """Note the plan."""
        as_json = plan.as_json()
        self.note(AttemptState.CHECKING, plan=as_json, total=as_json["valid"], invalid=sum(as_json["invalid"].values()))

    def begin(self, counts: RowCounts, to_send: int) -> None:
        """Note that sending begins, with the counts of the check."""
        self._total = counts.rows - counts.invalid
        self._done = self._total - to_send
        self._began = self._noted = self._clock()
        self.note(AttemptState.SENDING, {name: getattr(counts, name) for name in COUNTS})

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time a post, however it ends, in any thread."""
        began = self._clock()
        try:
            yield
        finally:
            self._metrics.time("request_duration", self._clock() - began)

    def beat(self) -> None:
        """Report what was added since the last call: to the metrics; every few seconds to log and ledger, too."""
        self._emit()
        sender, now = self.sender, self._clock()
        if sender is None or now - self._noted < EVERY_SECONDS:
            return
        self._noted = now
        paused = sender.stop_conditions.paused is not None
        done, rate = self._done + sender.taken, self._rate
        if self._logged != (done, paused):
            self._logged = done, paused
            left = f"{(self._total - done) / rate:.0f} s left" if rate else "no estimate yet"
            how = "paused" if paused else f"{rate or 0:.0f} a second, {left}"
            log.info("%d of %d %s done, %s", done, self._total, by_count(self._total, "row"), how)
        if paused:
            self.note(AttemptState.PAUSED)
        else:
            self.note(AttemptState.SENDING, rate=rate)

    @contextmanager
    def until_ended(self) -> Iterator[None]:
        """Report the end of the attempt that is made in the block; what it waits for is noted already."""
        try:
            yield
        except TaskDeferred:
            self._emit()
            raise
        except BaseException:
            self._end(AttemptState.FAILED)
            raise
        self._end(AttemptState.ENDED)

    def _end(self, state: AttemptState) -> None:
        self._emit()
        if (summary := self.summary) is None:
            self.note(state)
            return
        for name in COUNTS:
            if name != "accepted":  # the others are final only now
                self._metrics.count(name, summary[name])
        total, not_sent, invalid = summary["rows"] - summary["invalid"], summary["not_sent"], summary["invalid"]
        self.note(
            state, summary, total=total, done=total - not_sent, not_sent=not_sent, invalid=invalid, rate=self._rate
        )

    def note(self, state: str, figures: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Note a state of the attempt in the ledger, as :func:`note_progress` does, with the totals once it sends."""
        if self._total:
            columns = {"total": self._total, "done": self._done + self._taken, **columns}
        try:
            note_progress(
                self._store, self._campaign, self._claimant_id, state, conn_id=self._conn_id, figures=figures, **columns
            )
        except Exception as error:  # noqa: BLE001  # nobody may be left out because a note could not be written
            if not self._warned:
                log.warning("The ledger does not take notes of the progress now: %s", describe(error))
            self._warned = True

    @property
    def _taken(self) -> int:
        return 0 if self.sender is None else self.sender.taken

    @property
    def _rate(self) -> float | None:
        """The messages that the service took, a second; None before the first one."""
        seconds = self._clock() - self._began
        return self._taken / seconds if self._taken and seconds > 0 else None

    def _emit(self) -> None:
        """Report to the metrics what was added: what was accepted, and the balance."""
        if self.sender is None:
            return
        self._metrics.count("accepted", self._taken - self._counted)
        self._counted = self._taken
        balance = self.sender.stop_conditions.balance
        if self._is_prepaid and balance is not None and balance != self._balance:
            self._balance = balance
            self._account.gauge("balance", float(balance))


def one_line(summary: dict[str, Any], of_unknown_cost: int = 0) -> str:
    """Return the summary as a line for the log."""
    counts = ", ".join(f"{name} {summary[name]}" for name in ("rows", *COUNTS))
    reconciled = summary["reconciled"]
    told = f"; the balance told what became of {counted(reconciled, 'message')}" if reconciled else ""
    told += f"; the service left out {summary['left_out']} of them" if summary["left_out"] else ""
    requests, parts = counted(summary["requests"], "request"), counted(summary["parts"], "part")
    cost = at_least(str(summary["cost"]), of_unknown_cost)
    return f"Campaign {summary['campaign']}: {counts}; {requests}, {parts}, cost {cost}{told}"
