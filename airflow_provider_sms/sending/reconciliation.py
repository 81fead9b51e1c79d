"""Closing requests whose response was lost, by what the account's balance proves: ``on_unknown="reconcile"``.

At once, whatever ``on_unknown`` is, a lost response makes its request unknown, and the send slower:
:mod:`~airflow_provider_sms.sending.response_handler`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import LedgerError, ServiceError
from airflow_provider_sms.ledger.account import CHARGED, UNDECIDED, Evidence
from airflow_provider_sms.ledger.account_history import account_of, note_evidence, read_histories
from airflow_provider_sms.ledger.balances import record_reading
from airflow_provider_sms.ledger.decisions import close_by_balance
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.ledger.request_queries import requests_among
from airflow_provider_sms.sending.evidence import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import RequestState
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.sending.pending import PendingMessages
    from airflow_provider_sms.sending.request_batch import InFlightRequest
    from airflow_provider_sms.sending.stop_conditions import Caution
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""Seconds between two looks at requests of other processes that are under way."""
UNREADABLE_SECONDS = 10.0
"""Seconds between two attempts to read the balance where it cannot be read."""
MAX_UNREADABLE = 4
"""Failed attempts in a row to read the balance after which requests stay unknown."""
_OTHER_ACCOUNT = "It was not sent with this account, so the balance tells nothing of it."
_NO_ACCOUNT = "The ledger does not know the account that it was sent with, so the balance tells nothing of it."
_POST_PAID = "The account is post-paid, so its balance does not tell what became of the request."


@own_decimals()
def weigh(store: LedgerBackend, key: str, request_ids: Collection[int]) -> dict[int, Evidence]:
    """Return what the balances and charges in the ledger prove of unknown requests, by their ids.

    A request that has an outcome by now is missing.

    :param key: the account's key.
    :raises LedgerError: when the ledger cannot be read.
    """
    found: dict[int, Evidence] = {}
    for history in read_histories(store, key, request_ids):
        found.update(judge(history))
    accounts = account_of(store, set(request_ids).difference(found))
    return found | {each: _no_evidence(accounts[each]) for each in accounts if accounts[each] != key}


def _no_evidence(account: str | None) -> Evidence:
    """Return what the balance of one account tells of a request of another.

    :param account: of the request; None where the ledger does not know it.
    """
    return Evidence(UNDECIDED, _NO_ACCOUNT if account is None else _OTHER_ACCOUNT)


class Reconciliation:
    """Reads the balance of an account, and closes requests of a campaign by what it proves.

    :param key: the account's key, see :class:`~airflow_provider_sms.ledger.account.Account`.
    :param read_balance: asks the service, and raises :class:`ServiceError`. Called in several threads.
    :param stop: when set, nothing is waited for.
    :param sleep: waits for that many seconds.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        key: str,
        read_balance: Callable[[], Balance],
        *,
        stop: StopFlag,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._campaign_name = campaign_name
        self._key = key
        self._read_balance = read_balance
        self._stop = stop
        self._sleep = sleep

    def observe(self) -> Balance:
        """Read the balance, and record it in the ledger; a ledger that does not take it is logged.

        :raises ServiceError: there is no usable response.
        """
        asked_at = self._store.clock()
        balance = self._read_balance()
        amount = None if balance.post_paid else balance.amount
        try:
            record_reading(self._store, self._key, amount, asked_at)
        except LedgerError as error:
            log.warning("The balance was not recorded, so it cannot serve as evidence later: %s", error)
        return balance

    def now(self) -> float:
        """Return what time it is for the ledger, seconds since the epoch."""
        return self._store.clock()

    def weigh(self, request_ids: Collection[int], *, wait: bool = False) -> dict[int, Evidence] | None:
        """Read the balance, and return what it proves of unknown requests; None where it cannot be read.

        :param wait: whether to wait for requests of other processes that may be under way and were claimed before the
            balance was read: their responses tell what they cost. Each ends by the deadline of its claim.
        :raises LedgerError: when the ledger cannot be read.
        """
        try:
            balance = self.observe()
        except ServiceError as error:
            log.warning("The balance cannot be read, so nothing tells what became of lost requests: %s", error)
            return None
        if balance.post_paid:
            found = {each: Evidence(UNDECIDED, _POST_PAID) for each in request_ids}
            accounts = account_of(self._store, request_ids)
            return found | {each: _no_evidence(accounts[each]) for each in accounts if accounts[each] != self._key}
        found = weigh(self._store, self._key, request_ids)
        others = _waited_for(found)
        while wait and others and not self._stop.is_set():
            self._sleep(POLL_SECONDS)
            found = weigh(self._store, self._key, request_ids)
            # Never for those that were claimed since: two tasks would wait for each other for ever.
            others &= _waited_for(found)
        return found

    @own_decimals()
    def close(self, request_ids: Collection[int]) -> dict[int, Evidence] | None:
        """Close the requests whose outcome the balance proves; return None where it cannot be read.

        :returns: evidence by request. One whose verdict is not undecided is closed: accepted where it was charged for,
            else given back. A request that had an outcome by then is missing.
        :raises LedgerError: when the ledger cannot be read, or does not take the evidence.
        """
        found = self.weigh(request_ids, wait=True)
        if found is None:
            return None
        kept = self._kept(found)
        decided: dict[int, tuple[RequestState, KeptEvidence]] = {
            each: (ACCEPTED if evidence.verdict == CHARGED else NOT_SENT, kept[each])
            for each, evidence in found.items()
            if evidence.verdict != UNDECIDED
        }
        closed = close_by_balance(self._store, self._campaign_name, decided)
        self._note({each: kept[each] for each in kept if each not in decided})
        found = {each: evidence for each, evidence in found.items() if each in closed or each not in decided}
        _log(found)
        return found

    def is_accepted(self, request_id: int) -> bool:
        """Return whether the ledger has a request as accepted, whoever decided it.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            found = requests_among(connection, [request_id], self._store.clock())
        return any(each.state == ACCEPTED for each in found)

    def show(self, request_ids: Collection[int]) -> dict[int, Evidence]:
        """Read the balance, log and keep what it proves of unknown requests, and close none.

        :returns: evidence by request; none where the balance cannot be read.
        :raises LedgerError: when the ledger cannot be read, or does not take the evidence.
        """
        found = self.weigh(request_ids) or {}
        self._note(self._kept(found))
        _log(found)
        return found

    def _kept(self, found: Mapping[int, Evidence]) -> dict[int, KeptEvidence]:
        now = self._store.clock()
        return {each: evidence.kept(now) for each, evidence in found.items()}

    def _note(self, kept: Mapping[int, KeptEvidence]) -> None:
        """Keep evidence. Of requests of other accounts, it replaces nothing that the balance of theirs has told."""
        others = {each for each in kept if kept[each].words in (_OTHER_ACCOUNT, _NO_ACCOUNT)}
        if kept:
            note_evidence(self._store, self._campaign_name, kept, keep_earlier_of=others)


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

    @property
    def any(self) -> bool:
        """Whether there are requests without a verdict."""
        return bool(self._lost)

    @property
    def waiting(self) -> bool:
        """Whether nothing may be claimed before there is a verdict; a balance that cannot be read is not waited for."""
        return bool(self._lost) and not self._unreadable

    def adopts(self, request_id: int) -> bool:
        """Return whether an unknown request of another attempt may still be closed."""
        return self._reconciliation is not None and request_id not in self._undecided

    def add(self, request: InFlightRequest) -> None:
        """Keep a request of this send whose response was lost."""
        if self._reconciliation is not None:
            self._keep(
                request.request_id, _Lost(request.batch.messages, request.batch.chunk.planned_parts, is_mine=True)
            )

    def adopt(self, request_id: int, messages: Sequence[Outgoing]) -> None:
        """Keep an unknown request of another attempt, or of an earlier leg of this one, whose claim has lapsed."""
        kept = [*self._lost[request_id].messages] if request_id in self._lost else []
        is_of_earlier_leg = request_id in self._counts.lost_requests
        keys = {outgoing.key for outgoing in kept}
        for outgoing in messages:
            if is_of_earlier_leg and outgoing.key in keys:
                self._counts.add_duplicate(outgoing.row)  # whatever becomes of the message
            else:
                keys.add(outgoing.key)
                kept.append(outgoing)
        self._keep(request_id, _Lost(kept, None, is_mine=False))

    def _keep(self, request_id: int, lost: _Lost) -> None:
        self._lost[request_id] = lost
        self._due = 0.0

    def answered(self) -> None:
        """Record that the service responded, so that it may tell the balance, too."""
        self._unreadable = 0

    def settle(self, pending: PendingMessages, *, last: bool) -> None:
        """Close what the balance proves: at once what was charged for, and the rest once it is settled.

        Call this repeatedly, while nothing is in flight and every outcome is recorded. Messages that are given back go
        to ``pending``.

        :param last: whether nothing else is left to send: then a balance that cannot be read is asked for again.
        :raises LedgerError: when the ledger cannot be read, or does not take the outcome.
        """
        if self._reconciliation is None or not self._lost or self._reconciliation.now() < self._due:
            return
        if self._unreadable and not last:
            return
        found = self._reconciliation.close(list(self._lost))
        if found is not None:
            self._unreadable = 0
            self._apply(found, pending, self._reconciliation)
            return
        self._unreadable += 1
        self._due = self._reconciliation.now() + UNREADABLE_SECONDS
        if self._unreadable >= MAX_UNREADABLE:
            for request_id in list(self._lost):
                self._leave_open(request_id, pending)

    def give_up(self) -> None:
        """Leave the rest unknown."""
        for request_id in list(self._lost):
            self._leave(request_id)

    def _apply(self, found: Mapping[int, Evidence], pending: PendingMessages, reconciliation: Reconciliation) -> None:
        for request_id, lost in list(self._lost.items()):
            evidence = found.get(request_id)
            if evidence is not None and evidence.verdict == UNDECIDED:
                if evidence.settles_at is None:
                    self._leave_open(request_id, pending)
                else:
                    self._due = max(self._due, evidence.settles_at)
                continue
            is_charged = evidence is not None and evidence.verdict == CHARGED
            is_of_earlier_leg = request_id in self._counts.lost_requests
            # Without evidence, a person or a late response was faster.
            is_own = lost.is_mine or is_of_earlier_leg
            is_taken = is_charged or (is_own and evidence is None and reconciliation.is_accepted(request_id))
            del self._lost[request_id]
            if lost.is_mine:
                self._counts.remove_unknown(request_id, len(lost.messages), is_charged=is_taken)
            elif is_of_earlier_leg and not is_taken:
                self._counts.requests -= 1
            self._counts.close_opted_out(request_id, is_charged=is_taken)
            if evidence is not None:
                self._counts.reconciled += len(lost.messages)
            if evidence is not None and is_charged:
                self._caution.took_a_lost_one()
                parts = None if evidence.in_part else lost.parts
                self._counts.add_charged(len(lost.messages), parts, evidence.amount, is_mine=is_own)
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
            if request_id in self._counts.lost_requests:
                self._counts.met_lost += len(lost.messages)


def _waited_for(found: Mapping[int, Evidence]) -> set[int]:
    return {other for evidence in found.values() for other in evidence.waits_for}


def _log(found: Mapping[int, Evidence]) -> None:
    """Log what the balance tells, each sentence once; a warning where people were left out or waiting is of no use."""
    for words, evidence in {evidence.words: evidence for evidence in found.values()}.items():
        is_open = evidence.verdict == UNDECIDED and evidence.settles_at is None
        log.log(logging.WARNING if is_open or evidence.in_part else logging.INFO, "%s", words)
