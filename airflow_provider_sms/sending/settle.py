"""What is done about requests whose response was lost, while nothing is in flight: the account's balance is read.

With ``on_unknown="reconcile"`` a send closes what the balance decides, and claims nothing before. At once, whatever
``on_unknown`` is, a lost response makes its request unknown, and the send slower:
:mod:`~airflow_provider_sms.sending.response_handler`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import LedgerError, OutageError, ServiceError
from airflow_provider_sms.ledger.account import CHARGED, UNDECIDED
from airflow_provider_sms.ledger.balances import (
    lost_lately,
    note_evidence,
    read_histories,
    record_reading,
    still_unknown,
)
from airflow_provider_sms.ledger.decisions import close_by_balance
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.request_queries import requests_among
from airflow_provider_sms.sending.evidence import Verdict, judge, late_charges

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.sending.pending import PendingMessages
    from airflow_provider_sms.sending.request_batch import InFlightRequest
    from airflow_provider_sms.sending.stop_conditions import Caution
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two looks at the lost requests of the account's other tasks, and at least between two readings."""
QUIET_SECONDS = 60.0
"""Seconds for which a quiet balance is waited for, once a lost request is settled."""
UNREADABLE_SECONDS = 10.0
"""Seconds between two attempts to read the balance where it cannot be read."""
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
    :param warn: is told of what contradicts earlier verdicts.
    :raises LedgerError: when the ledger cannot be read.
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
        self._warned: set[str] = set()

    def observe(self) -> Balance:
        """Read the balance, and record it in the ledger; a ledger that does not take it is logged.

        :raises ServiceError: there is no usable response.
        """
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
        """Read the balance, and return what it tells of unknown requests, by id; one with an outcome is missing.

        :raises ServiceError: the balance cannot be read.
        :raises LedgerError: when the ledger cannot be read.
        """
        self.observe()
        found = weigh(self._store, self._key, request_ids, self._warn)
        # Nothing is taken back that the balance of another account has told.
        return {each: _POST_PAID if self._is_post_paid and its.words else its for each, its in found.items()}

    @own_decimals()
    def close(self, request_ids: Collection[int]) -> dict[int, Verdict]:
        """Read the balance, and close the requests whose outcome it proves: accepted if charged for, else given back.

        :returns: as :meth:`weigh`, with the verdict on each that it closed.
        :raises ServiceError: the balance cannot be read.
        :raises LedgerError: when the ledger cannot be read, or does not take the evidence.
        """
        found, now = self.weigh(request_ids), self.now()
        decided = {each: verdict for each, verdict in found.items() if verdict.outcome != UNDECIDED}
        states = {each: ACCEPTED if verdict.outcome == CHARGED else NOT_SENT for each, verdict in decided.items()}
        kept = {each: (states[each], verdict.kept(now)) for each, verdict in decided.items()}
        closed = close_by_balance(self._store, self._campaign_name, kept)
        told = {each: verdict for each, verdict in found.items() if each in closed or each not in decided}
        self._note({each: verdict for each, verdict in told.items() if each not in closed})
        for verdict in told.values():
            is_open = verdict.outcome == UNDECIDED and verdict.settles_at is None
            log.log(logging.WARNING if is_open else logging.INFO, "%s", verdict.words)
        return told

    def show(self, request_ids: Collection[int]) -> None:
        """Read the balance, and keep what it tells of unknown requests; a balance that cannot be read is logged.

        :raises LedgerError: when the ledger cannot be read, or does not take the evidence.
        """
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
        """Return when the last lost request of the account is settled that a later balance may decide; None: no such.

        :raises LedgerError: when the ledger cannot be read.
        """
        recent = set() if self._is_post_paid else lost_lately(self._store, self._key, self.now() - QUIET_SECONDS)
        found = weigh(self._store, self._key, recent) if recent else {}
        return max((each.settles_at for each in found.values() if each.settles_at is not None), default=None)

    def is_accepted(self, request_id: int) -> bool:
        """Return whether the ledger has a request as accepted, whoever decided it.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            found = requests_among(connection, [request_id], self._store.clock())
        return any(each.state == ACCEPTED for each in found)


class _Lost(NamedTuple):
    """A request whose response was lost.

    :param parts: SMS parts of its messages; None where that is not known.
    :param is_mine: whether this send made it, and has counted it.
    """

    messages: Sequence[Outgoing]
    parts: int | None
    is_mine: bool


class LostRequests:
    """The requests of a send whose response was lost, until the balance has told what became of them.

    Not thread-safe: the sender's thread owns it.

    :param reconciliation: closes requests; None means that they stay unknown.
    :param caution: is told of requests that the service took after all.
    """

    def __init__(self, reconciliation: Reconciliation | None, counts: SendCounts, caution: Caution) -> None:
        self._reconciliation = reconciliation
        self._counts = counts
        self._caution = caution
        self._lost: dict[int, _Lost] = {}
        self._undecided: set[int] = set()
        self._due = 0.0
        """When the balance is read next, seconds since the epoch by the ledger's clock."""
        self._unreadable = 0
        """How often in a row the balance could not be read."""
        self._in_doubt: float | None = None
        """When a lost request of another task is settled that keeps this one from claiming; None where none does."""
        self._look_at = 0.0

    @property
    def any(self) -> bool:
        """Whether there are requests without a verdict."""
        return bool(self._lost)

    def hold(self) -> bool:
        """Return whether nothing may be claimed: a request of the account is lost that a balance may still decide.

        :raises LedgerError: when the ledger cannot be read.
        """
        if self._lost or self._reconciliation is None:
            return bool(self._lost)
        if (now := self._reconciliation.now()) >= self._look_at:
            self._in_doubt, self._look_at = self._reconciliation.in_doubt(), now + LOOK_SECONDS
        return self._in_doubt is not None

    def adopts(self, request_id: int) -> bool:
        """Return whether an unknown request of another attempt may still be closed."""
        return self._reconciliation is not None and request_id not in self._undecided

    def add(self, request: InFlightRequest) -> None:
        """Keep a request of this send whose response was lost."""
        if self._reconciliation is not None:
            messages = request.batch.messages
            parts = sum(each.parts or 0 for each in messages) or None
            self._keep(request.request_id, _Lost(messages, parts, is_mine=True))

    def adopt(self, request_id: int, messages: Sequence[Outgoing]) -> None:
        """Keep an unknown request of another attempt, or of an earlier leg of this one, whose claim has lapsed."""
        kept = self._lost[request_id].messages if request_id in self._lost else ()
        self._keep(request_id, _Lost([*kept, *messages], None, is_mine=False))

    def _keep(self, request_id: int, lost: _Lost) -> None:
        self._lost[request_id] = lost
        self._due = 0.0

    def settle(self, pending: PendingMessages) -> None:
        """Close what the balance proves: at once what was charged for, and the rest once it is settled.

        Call this repeatedly, while nothing is in flight and every outcome is recorded. Messages that are given back go
        to ``pending``.

        :raises OutageError: the balance cannot be read.
        :raises LedgerError: when the ledger cannot be read, or does not take the outcome.
        """
        if self._reconciliation is None or not self.hold():
            return
        now = self._reconciliation.now()
        if now < (self._due if self._lost else max(self._due, self._in_doubt or 0.0)):
            return
        self._due, self._look_at = 0.0 if self._lost else now + LOOK_SECONDS, 0.0
        try:
            found = self._reconciliation.close(list(self._lost))
        except ServiceError as error:
            self._due, self._unreadable = now + UNREADABLE_SECONDS, self._unreadable + 1
            log.warning("The balance cannot be read, so nothing tells what became of lost requests: %s", error)
            if self._unreadable >= MAX_UNREADABLE:
                raise OutageError(
                    "responses were lost, and the balance that tells what became of their requests cannot be read: "
                    f"{error}. The next attempt reads it again, and sends the rest"
                ) from error
        else:
            self._unreadable = 0
            self._apply(found, pending, self._reconciliation)

    def give_up(self) -> None:
        """Leave the rest unknown."""
        for request_id in list(self._lost):
            self._leave(request_id)

    def _apply(self, found: Mapping[int, Verdict], pending: PendingMessages, reconciliation: Reconciliation) -> None:
        now = reconciliation.now()
        for request_id, lost in list(self._lost.items()):
            verdict = found.get(request_id)
            if verdict is not None and verdict.outcome == UNDECIDED:
                if verdict.settles_at is None or now > verdict.settles_at + QUIET_SECONDS:
                    self._leave_open(request_id, pending)
                else:
                    self._due = max(self._due, verdict.settles_at if verdict.settles_at > now else now + LOOK_SECONDS)
                continue
            is_charged = verdict is not None and verdict.outcome == CHARGED
            is_of_earlier_leg = request_id in self._counts.lost_requests
            # Without a verdict, a person or a late response was faster.
            is_own = lost.is_mine or is_of_earlier_leg
            is_taken = is_charged or (is_own and verdict is None and reconciliation.is_accepted(request_id))
            del self._lost[request_id]
            if lost.is_mine:
                self._counts.remove_unknown(request_id, len(lost.messages), is_charged=is_taken)
            elif is_of_earlier_leg and not is_taken:
                self._counts.requests -= 1
            if verdict is not None:
                self._counts.reconciled += len(lost.messages)
            if verdict is not None and is_charged:
                self._caution.took_a_lost_one()
                self._counts.add_charged(len(lost.messages), lost.parts, verdict.amount, is_mine=is_own)
            else:
                # Given back, or decided without the balance, as the ledger tells.
                pending.reconcile(lost.messages, turned_away=True)

    def _leave_open(self, request_id: int, pending: PendingMessages) -> None:
        """Leave a request whose outcome the balance does not tell: its own process may still record it."""
        self._undecided.add(request_id)
        if not self._lost[request_id].is_mine:
            try:
                pending.reconcile(self._lost[request_id].messages)
            except LedgerError:
                self._leave(request_id)
                raise
            del self._lost[request_id]
        else:
            self._leave(request_id)

    def _leave(self, request_id: int) -> None:
        lost = self._lost.pop(request_id)
        self._undecided.add(request_id)
        if not lost.is_mine:
            self._counts.add_unknown(request_id, len(lost.messages))
