"""Settling, between two passes of a send and with nothing of it in flight: what was lost, and what others hold.

Claims of others are awaited. Requests whose outcome is unknown stay so with ``on_unknown="fail"``; with ``"reconcile"``
they are closed by what the account's balance decides, and nothing is claimed before; with ``"resend"`` they are
superseded, so that their messages may be sent again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import LedgerError, NotSentError, OutageError, ServiceError
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED
from airflow_provider_sms.ledger.balances import (
    lost_lately,
    note_evidence,
    read_histories,
    record_reading,
    still_unknown,
)
from airflow_provider_sms.ledger.decisions import close_by_balance
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.sending.evidence import Verdict, judge, late_charges

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.sending.sender import Sender
    from airflow_provider_sms.sending.stop_conditions import Caution
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""Seconds between two looks at the stop signal, and at the claims of others."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at the lost requests of the account's other tasks, and at least between two readings."""
QUIET_SECONDS = 60.0
"""Seconds for which a quiet balance is waited for, once a lost request is settled."""
UNREADABLE_SECONDS = 10.0
"""Seconds between two attempts to read the balance where it cannot be read."""
MAX_WAIT_SECONDS = 600.0
"""Seconds of one wait, by a clock that nobody sets: a set clock makes claims younger, and tasks of an account that lose
responses again and again leave no quiet balance."""
MAX_UNREADABLE = 4
"""Failed attempts in a row to read the balance that end the send."""
_POST_PAID = Verdict(UNDECIDED, "The account is post-paid, so its balance does not tell what became of the request.")
_OTHER_ACCOUNT = Verdict(UNDECIDED, "")


@own_decimals()
def weigh(
    store: LedgerBackend, key: str, request_ids: Collection[int], warn: Callable[[str], object] = lambda _: None
) -> dict[int, Verdict]:
    """Return what the balances in the ledger tell of unknown requests, by id; one with an outcome by now is missing.

    :param key: the account's key. Of the requests of another account it tells nothing.
    """
    found: dict[int, Verdict] = {}
    for history in read_histories(store, key, request_ids):
        found.update(judge(*history))
        for words in late_charges(*history):
            warn(words)
    return {each: found.get(each, _OTHER_ACCOUNT) for each in still_unknown(store, request_ids)}


class Reconciliation:
    """Reads the balance of an account, and closes requests of a campaign by what it proves.

    :param key: the account's key, see :class:`~airflow_provider_sms.ledger.account.Account`.
    :param read_balance: asks the service, and raises :class:`ServiceError`. Called in several threads.
    """

    def __init__(self, store: LedgerBackend, campaign_name: str, key: str, read_balance: Callable[[], Balance]) -> None:
        self._store = store
        self._campaign_name = campaign_name
        self._key = key
        self._read_balance = read_balance
        self._is_post_paid = False
        self.reconciled = 0
        """Messages of the requests that it closed."""
        self._warned: set[str] = set()

    def observe(self) -> Balance:
        """Read the balance, and record it in the ledger; a ledger that does not take it is logged."""
        asked_at = self._store.clock()
        balance = self._read_balance()
        self._is_post_paid = balance.post_paid
        try:
            record_reading(self._store, self._key, None if balance.post_paid else balance.amount, asked_at)
        except LedgerError as error:
            log.warning("The balance was not recorded, so it cannot serve as evidence later: %s", error)
        return balance

    def now(self) -> float:
        """Return what time it is for the ledger, seconds since the epoch."""
        return self._store.clock()

    def weigh(self, request_ids: Collection[int]) -> dict[int, Verdict]:
        """Read the balance, and return what it tells of unknown requests, by id; one with an outcome is missing."""
        self.observe()
        found = weigh(self._store, self._key, request_ids, self._warn)
        # Nothing is taken back that the balance of another account has told.
        return {each: _POST_PAID if self._is_post_paid and its.words else its for each, its in found.items()}

    @own_decimals()
    def close(self, request_ids: Collection[int]) -> dict[int, Verdict]:
        """Read the balance, and close the requests whose outcome it proves: accepted if charged for, else given back.

        :returns: as :meth:`weigh`, with the verdict on each that it closed.
        """
        found, now = self.weigh(request_ids), self.now()
        decided = {each: verdict for each, verdict in found.items() if verdict.outcome != UNDECIDED}
        states = {each: ACCEPTED if verdict.outcome == CHARGED else NOT_SENT for each, verdict in decided.items()}
        kept = {each: (states[each], verdict.kept(now)) for each, verdict in decided.items()}
        closed = close_by_balance(self._store, self._campaign_name, kept)
        self.reconciled += sum(closed.values())
        told = {each: verdict for each, verdict in found.items() if each in closed or each not in decided}
        self._note({each: verdict for each, verdict in told.items() if each not in closed})
        for verdict in (each for each in told.values() if each.words):
            is_open = verdict.outcome == UNDECIDED and verdict.settles_at is None
            log.log(logging.WARNING if is_open else logging.INFO, "%s", verdict.words)
        return told

    def show(self, request_ids: Collection[int]) -> None:
        """Read the balance, and keep what it tells of unknown requests; a balance that cannot be read is logged."""
        try:
            self._note(self.weigh(request_ids))
        except ServiceError as error:
            log.warning("The balance cannot be read, so nothing tells what became of lost requests: %s", error)

    def _warn(self, words: str) -> None:
        if words not in self._warned:
            log.warning("%s", words)
        self._warned.add(words)

    def _note(self, found: Mapping[int, Verdict]) -> None:
        now = self.now()
        if kept := {each: verdict.kept(now) for each, verdict in found.items() if verdict.words}:
            note_evidence(self._store, self._campaign_name, kept)

    def in_doubt(self) -> float | None:
        """Return when the last lost request of the account is settled that a later balance may decide; None if none."""
        recent = set() if self._is_post_paid else lost_lately(self._store, self._key, self.now() - QUIET_SECONDS)
        found = weigh(self._store, self._key, recent) if recent else {}
        return max((each.settles_at for each in found.values() if each.settles_at is not None), default=None)


class Settle:
    """Settles what a pass left open: claims of other processes, and requests whose outcome is unknown.

    :param on_unknown: what becomes of these: ``fail``, ``reconcile`` or ``resend``.
    """

    def __init__(
        self,
        ledger: CampaignLedger,
        reconciliation: Reconciliation,
        on_unknown: str,
        stop: StopFlag,
        sleep: Callable[[float], None] = time.sleep,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._reconciliation = reconciliation
        self._on_unknown = on_unknown
        self._stop = stop
        self._sleep = sleep
        self._monotonic = monotonic
        self._unknown: set[int] = set()
        """Unknown requests that the balance may decide, or whose messages may be sent again."""
        self._look_at = 0.0
        self._doubt: float | None = None

    def holds(self) -> bool:
        """Return whether nothing may be claimed: a request of the account is lost that a balance may still decide."""
        if (now := self._monotonic()) >= self._look_at:
            self._doubt, self._look_at = self._reconciliation.in_doubt(), now + LOOK_SECONDS
        return self._doubt is not None

    def run(self, sender: Sender) -> bool:
        """Settle what the last pass left open, and return whether messages became free.

        :raises OutageError: the balance cannot be read, or too many responses in a row were lost.
        """
        self._unknown |= sender.lost
        noted, sender.lost, sender.noted = sender.noted, set(), set()
        if self._stop.is_set() or sender.ledger_failed:
            return False
        freed = self._await_others(noted) if sender.goes_on else False
        if self._on_unknown == "resend" and sender.goes_on:
            return self._supersede() or freed
        # A service that cannot be reached tells no balance.
        if self._on_unknown == "reconcile" and not isinstance(sender.error, (NotSentError, OutageError)):
            caution = sender.stop_conditions.caution
            freed |= self._reconcile(caution)
            if caution.outage is not None:
                raise caution.outage
        return freed

    def _await_others(self, noted: Collection[int]) -> bool:
        """Wait until claims of others have an outcome or have lapsed: that saves a retry, and nothing rests on it."""
        found, ends_at = self._ledger.states(noted), self._monotonic() + MAX_WAIT_SECONDS
        while any(each.state == CLAIMED for each in found.values()) and not self._is_over(ends_at):
            self._sleep(POLL_SECONDS)
            found = self._ledger.states(noted)
        self._unknown.update(each for each, standing in found.items() if standing.state == UNKNOWN)
        return len(found) < len(noted) or any(each.state in (NOT_SENT, SUPERSEDED) for each in found.values())

    def _is_over(self, ends_at: float) -> bool:
        return self._stop.is_set() or self._monotonic() > ends_at

    def _supersede(self) -> bool:
        """Let messages be sent again, once in an attempt: the next attempt comes after Airflow's retry delay."""
        if not self._unknown:
            return False
        found = self._ledger.states(self._unknown)
        resent = self._ledger.resent([each for each, standing in found.items() if standing.mine])
        # The process of the others may still record an outcome.
        given_up = {each for each, standing in found.items() if not (standing.awaited or each in resent)}
        self._unknown -= given_up
        if freed := self._ledger.supersede(sorted(given_up)):
            log.warning(
                "What may have been sent is sent again, since on_unknown='resend': %s", counted(freed, "message")
            )
        return freed > 0

    def _reconcile(self, caution: Caution) -> bool:
        """Close what the balance decides: at once what was charged for, and the rest once it is settled."""
        freed, failures, due, ends_at = False, 0, 0.0, self._monotonic() + MAX_WAIT_SECONDS
        while not self._is_over(ends_at):
            self._look_at = 0.0
            if not (self.holds() or self._unknown):
                break
            now = self._reconciliation.now()
            if now < (due if self._unknown else max(due, self._doubt or 0.0)):
                self._sleep(POLL_SECONDS)
                continue
            try:
                found = self._reconciliation.close(self._unknown)
            except ServiceError as error:
                failures, due = failures + 1, now + UNREADABLE_SECONDS
                log.warning("The balance cannot be read, so nothing tells what became of lost requests: %s", error)
                if failures >= MAX_UNREADABLE:
                    raise OutageError(
                        "responses were lost, and the balance that tells what became of their requests cannot be read: "
                        f"{error}. The next attempt reads it again, and sends the rest"
                    ) from error
                continue
            failures, due = 0, now + LOOK_SECONDS
            gave_back, settles_at = self._apply(found, caution)
            freed, due = freed or gave_back, max(due, settles_at)
        if self._doubt is not None and not self._stop.is_set():
            raise OutageError(
                f"the account's balance has told nothing for {MAX_WAIT_SECONDS:g} seconds, since responses to its "
                "tasks are lost again and again, or since a clock was set back. The next attempt sends the rest"
            )
        return freed

    def _apply(self, found: Mapping[int, Verdict], caution: Caution) -> tuple[bool, float]:
        """Forget the requests that are decided, or that no balance will decide.

        :returns: whether messages became free, and when the last of the others is settled.
        """
        freed, settles_at, now = False, 0.0, self._reconciliation.now()
        for request_id in list(self._unknown):
            verdict = found.get(request_id)
            if verdict is not None and verdict.settles_at is not None and now <= verdict.settles_at + QUIET_SECONDS:
                settles_at = max(settles_at, verdict.settles_at)
                continue
            self._unknown.remove(request_id)
            if verdict is None or verdict.outcome == NOT_CHARGED:
                freed = True  # without a verdict, a person or a late response was faster
            elif verdict.outcome == CHARGED:
                caution.lost_alone = 0  # the service works, and responses get lost
        return freed, settles_at
