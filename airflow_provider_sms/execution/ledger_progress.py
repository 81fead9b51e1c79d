"""Notes in the ledger for its readers: the progress of an attempt, and balances. No send depends on them."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sms.exceptions import InputError, NoConnectionError, SmsError
from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.hooks.ledger import open_existing_ledger
from airflow_provider_sms.ledger.balances import record_balance
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.ledger.progress import note_progress, of_summary
from airflow_provider_sms.reporting.summary import told_by_service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.service.responses import Balance


log = logging.getLogger(__name__)

REST_SECONDS = 60.0
"""Seconds without notes after a failed one, so that nothing waits for a slow ledger; the last note is always tried."""
BALANCE_SECONDS = 60.0
"""Seconds between two records of the balance that responses tell: more would fill the ledger."""
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
        self._post_paid: bool | None = None
        self._recorded: Decimal | None = None
        self._recorded_at: float | None = None

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
            # This balance is of an earlier leg: the account may have been topped up since.
            self._recorded = counts.remaining_balance
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

    def saw(self, balance: Balance) -> None:
        """Record a balance that was read."""
        self._post_paid = balance.post_paid
        self._record(balance.amount)

    def beat(self, *, last: bool = False) -> None:
        """Record the balance of the last response, unless one was recorded a moment ago.

        :param last: whether no other call follows.
        """
        amount = None if self._counts is None else self._counts.remaining_balance
        # Not "!=": after a top-up the balance may fall to the same amount again.
        if amount is None or amount is self._recorded:
            return
        now = self._clock()
        if last or self._recorded_at is None or now - self._recorded_at >= BALANCE_SECONDS:
            self._recorded, self._recorded_at = amount, now
            self._record(amount)

    def _rate(self, counts: SendCounts) -> float | None:
        done, seconds = counts.done - self._done_before, self._clock() - self._began
        return done / seconds if done > 0 and seconds > 0 else None

    def _record(self, amount: Decimal) -> None:
        from airflow_provider_sms.service.responses import POST_PAID_BALANCE

        post_paid = amount == POST_PAID_BALANCE if self._post_paid is None else self._post_paid
        self._write(lambda: record_balance(self._store, self._conn_id, None if post_paid else amount))

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


class BalanceNotes:
    """Records the balances of one account in the default ledger, if there is one.

    It never raises, and creates no ledger. It opens the ledger for each balance, but not for an unchanged one. After
    the first failure, which is logged, nothing more is recorded.

    :param conn_id: the connection of the account.
    :param clock: returns seconds, from any start.
    """

    def __init__(self, conn_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._conn_id = conn_id
        self._clock = clock
        self._broken = False
        self._last: tuple[Decimal | None, float] | None = None

    def record(self, amount: Decimal | None) -> None:
        """Record a balance that was just read.

        :param amount: credits; None means that the account is post-paid.
        """
        if self._broken or self._is_known(amount):
            return
        try:
            self._record(amount)
        except Exception as error:  # noqa: BLE001  # whatever a ledger raises, the sensor goes on
            if isinstance(error, InputError) and not isinstance(error, NoConnectionError):
                # There is no ledger, or the configured one cannot be used.
                log.debug("The balance is not recorded: %s", error)
                return
            self._broken = True
            words = str(error) if isinstance(error, SmsError) else type(error).__name__
            log.warning("Balances are not recorded in the ledger: %s", words)

    def _is_known(self, amount: Decimal | None) -> bool:
        from airflow_provider_sms.ledger.balances import FRESH_SECONDS

        if self._last is None:
            return False
        last, at = self._last
        return last == amount and self._clock() - at <= FRESH_SECONDS

    def _record(self, amount: Decimal | None) -> None:
        from airflow_provider_sms.ledger.balances import record_balance

        with closing(open_existing_ledger(None, connection=BaseHook.get_connection)) as store:
            record_balance(store, self._conn_id, amount)
        self._last = (amount, self._clock())
