"""Notes of an attempt's progress in the ledger, for its readers. No send depends on them."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.ledger.progress import note_progress, of_summary
from airflow_provider_sms.reporting.summary import told_by_service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.counts import SendCounts


log = logging.getLogger(__name__)

REST_SECONDS = 60.0
"""Seconds without notes after a failed one, so that nothing waits for a slow ledger; the last note is always tried."""
COUNTS = ("accepted", "unknown", "duplicate", "already_sent", "requests")


class LedgerProgress:
    """Notes the progress of an attempt. It never raises: it logs the first failure, and rests a while after each.

    :param claimant_id: the attempt's id in the ledger.
    :param campaign: the campaign's name.
    :param conn_id: the connection to send with.
    :param clock: returns seconds, from any start.
    """

    def __init__(
        self,
        store: LedgerBackend,
        claimant_id: int,
        campaign: str,
        conn_id: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._claimant_id = claimant_id
        self._campaign = campaign
        self._conn_id = conn_id
        self._clock = clock
        self._warned = False
        self._resting_until: float | None = None
        self._counts: SendCounts | None = None
        self._total = 0
        self._began = 0.0
        self._done_before = 0

    def note(self, state: str, figures: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Note a state of the attempt.

        :param figures: more figures about that state.
        :param columns: as for :func:`~airflow_provider_sms.ledger.progress.note_progress`; once the attempt sends, its
            totals are added.
        """
        if self._counts is not None:
            columns = {"total": self._total, "done": self._counts.done, **columns}
            # Also while it sends or waits: readers see the networks then, and a killed attempt notes nothing more.
            figures = {**of_summary(told_by_service(self._counts)), **(figures or {})}
        self._write(
            lambda: note_progress(
                self._store,
                self._campaign,
                self._claimant_id,
                state,
                conn_id=self._conn_id,
                figures=figures,
                **columns,
            )
        )

    def planned(self, plan: Plan) -> None:
        """Note the plan."""
        as_json = plan.as_json()
        self.note(AttemptState.CHECKING, plan=as_json, total=as_json["valid"], invalid=sum(as_json["invalid"].values()))

    def sending(self, counts: SendCounts, total: int, *, paused: bool) -> None:
        """Note the progress of the send.

        :param total: messages in all.
        """
        if self._counts is None:
            self._began = self._clock()
            self._done_before = counts.done
        self._counts, self._total = counts, total
        figures = {name: getattr(counts, name) for name in COUNTS}
        not_sent = counts.not_sent - counts.partial
        if paused:
            self.note(AttemptState.PAUSED, figures, not_sent=not_sent)
        else:
            self.note(AttemptState.SENDING, figures, not_sent=not_sent, rate=self._rate(counts))

    def ended(self, state: str, summary: Mapping[str, Any], *, left_out: int = 0) -> None:
        """Note the end of the attempt, even if the ledger took no notes before.

        :param summary: of the attempt.
        :param left_out: messages that the service left out of requests that it accepted before the attempt waited.
        """
        self._resting_until = None
        if not summary["rows"]:
            # No row was checked: zeros must not replace the totals of earlier notes.
            self.note(state, of_summary(summary))
            return
        total = summary["rows"] - summary["invalid"]
        # Messages that the service left out stay claimed by the accepted request: no attempt sends them.
        not_sent = summary["not_sent"] - (left_out if self._counts is None else self._counts.partial)
        self.note(
            state,
            of_summary(summary),
            total=total,
            done=total - not_sent,
            not_sent=not_sent,
            invalid=summary["invalid"],
            rate=None if self._counts is None else self._rate(self._counts),
        )

    def _rate(self, counts: SendCounts) -> float | None:
        done, seconds = counts.done - self._done_before, self._clock() - self._began
        return done / seconds if done > 0 and seconds > 0 else None

    def _write(self, work: Callable[[], object]) -> None:
        if self._resting_until is not None and self._clock() < self._resting_until:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001  # nobody may be left out because a note could not be written
            if not self._warned:
                log.warning("The ledger does not take notes of the progress now: %s", describe(error))
            self._warned = True
            self._resting_until = self._clock() + REST_SECONDS
