"""What the ledger is told of how a try goes, and of the balances that it sees; a try never depends on it."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.hooks.ledger import open_existing_ledger
from airflow_provider_sms.ledger.balances import record_balance
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
"""Seconds in which no other note is tried after one that failed; how a try ended is tried in any case."""
BALANCE_SECONDS = 60.0
"""Seconds between two balances, told by answers, that are recorded."""
COUNTS = ("accepted", "unknown", "duplicate", "already_sent", "requests")


class LedgerProgress:
    """Tells the ledger how a try goes. It never raises: the first failure is logged, and after each it rests a while.

    :param claimant_id: the try's, in the ledger.
    :param campaign: its name.
    :param conn_id: the connection that is sent with.
    :param clock: seconds, from any start.
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
        self._tally: SendCounts | None = None
        self._total = 0
        self._began = 0.0
        self._done_before = 0
        self._post_paid: bool | None = None
        self._told: Decimal | None = None
        self._told_at: float | None = None

    def note(self, state: str, figures: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Note what the try does, or waits for.

        :param figures: what else there is to say.
        :param columns: as of :func:`~airflow_provider_sms.ledger.progress.note_progress`; once it sends, how
            many are done is told in any case.
        """
        if self._tally is not None:
            columns = {"total": self._total, "done": _done(self._tally), **columns}
            # Also while it sends or waits: who looks then sees the networks, and a try that is killed says no more.
            figures = {**of_summary(told_by_service(self._tally)), **(figures or {})}
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
        """Note what is about to be sent."""
        as_json = plan.as_json()
        self.note("checking", plan=as_json, total=as_json["valid"], invalid=sum(as_json["invalid"].values()))

    def sending(self, tally: SendCounts, total: int, *, paused: bool) -> None:
        """Note how far sending is.

        :param total: messages in all.
        """
        if self._tally is None:
            self._began = self._clock()
            self._done_before = _done(tally)
            # Of an earlier part of the try: the account may have been topped up since.
            self._told = tally.remaining_balance
        self._tally, self._total = tally, total
        figures = {name: getattr(tally, name) for name in COUNTS}
        not_sent = tally.not_sent - tally.partial
        if paused:
            self.note("paused", figures, not_sent=not_sent)
        else:
            self.note("sending", figures, not_sent=not_sent, rate=self._rate(tally))

    def ended(self, state: str, summary: Mapping[str, Any]) -> None:
        """Note what it came to, also where the ledger took no notes before.

        :param summary: of the try.
        """
        self._resting_until = None
        if not summary["rows"]:
            # It came to look at nothing, and what was known before is not to be taken for nothing.
            self.note(state, of_summary(summary))
            return
        total = summary["rows"] - summary["invalid"]
        # What the service left out of a request that it took is held by it: no try sends it.
        not_sent = summary["not_sent"] - (0 if self._tally is None else self._tally.partial)
        self.note(
            state,
            of_summary(summary),
            total=total,
            done=total - not_sent,
            not_sent=not_sent,
            invalid=summary["invalid"],
            rate=None if self._tally is None else self._rate(self._tally),
        )

    def saw(self, balance: Balance) -> None:
        """Record a balance that was read."""
        self._post_paid = balance.post_paid
        self._record(balance.amount)

    def beat(self, *, last: bool = False) -> None:
        """Record the balance that the last answer told, unless one was recorded a moment ago.

        :param last: whether no other call follows.
        """
        told = None if self._tally is None else self._tally.remaining_balance
        # Not "!=": what was there before a top-up may be there again.
        if told is None or told is self._told:
            return
        now = self._clock()
        if last or self._told_at is None or now - self._told_at >= BALANCE_SECONDS:
            self._told, self._told_at = told, now
            self._record(told)

    def _rate(self, tally: SendCounts) -> float | None:
        done, seconds = _done(tally) - self._done_before, self._clock() - self._began
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
                log.warning("The ledger takes no notes of the progress now: %s", describe(error))
            self._warned = True
            self._resting_until = self._clock() + REST_SECONDS


def _done(tally: SendCounts) -> int:
    """Count the rows that need nothing more: at a wait those that are left count as not sent, and are settled, too."""
    return tally.settled - (tally.not_sent - tally.partial)


class BalanceNotes:
    """Records the balances of one account in the default ledger, where there is one. It never raises, and makes none.

    The ledger is opened for each balance, and not at all for one that is as it was. The first failure is logged, and
    nothing more is recorded.

    :param conn_id: the connection whose account it is.
    :param clock: seconds, from any start.
    """

    def __init__(self, conn_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._conn_id = conn_id
        self._clock = clock
        self._broken = False
        self._last: tuple[Decimal | None, float] | None = None

    def record(self, amount: Decimal | None) -> None:
        """Record a balance that was just seen.

        :param amount: credits; None: the account is post-paid.
        """
        if self._broken or self._is_known(amount):
            return
        try:
            self._record(amount)
        except InputError as error:
            # There is none, or none that this could be.
            log.debug("The balance is not recorded: %s", error)
        except Exception as error:  # noqa: BLE001  # whatever a ledger raises, the sensor goes on
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
