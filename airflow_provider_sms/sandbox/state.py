"""The sandbox's memory: balance, requests, accepted messages and waiting faults."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sandbox.account import Account
from airflow_provider_sms.sandbox.config import SandboxConfig, parse_amount
from airflow_provider_sms.sandbox.errors import RefusalError
from airflow_provider_sms.sandbox.faults import Fault, FaultQueue, parse_fault
from airflow_provider_sms.sandbox.message_filter import filter_messages
from airflow_provider_sms.sandbox.records import AcceptedMessage, RequestRecord, SendResult
from airflow_provider_sms.sandbox.tokens import Tokens
from airflow_provider_sms.sandbox.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sms.sandbox.account import Charge
    from airflow_provider_sms.sandbox.request_bodies import SendRequest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sandbox's counts and account at one moment. Two snapshots are equal when nothing happened between them.

    :param epoch: identifier that changes at each start and each :meth:`SandboxState.reset`.
    :param requests: requests to the service in this epoch.
    :param messages: messages accepted in this epoch.
    :param balance: the balance that the service reports, in credits.
    :param post_paid: whether nothing is deducted.
    :param faults: version of the waiting faults.
    """

    epoch: str
    requests: int
    messages: int
    balance: Decimal
    post_paid: bool
    faults: int


@dataclass(frozen=True, slots=True)
class NewRecords:
    """The records added to the memory since an earlier read.

    :param epoch: the epoch of the records.
    :param requests: requests, in the order in which they were decided.
    :param messages: accepted messages, in the order of the witness; those of one request are consecutive.
    """

    epoch: str
    requests: list[RequestRecord]
    messages: list[AcceptedMessage]


class SandboxState:
    """The memory of one sandbox. Every method may be called from any thread.

    :param config: the settings that a start and :meth:`reset` apply.
    :raises OSError: when the witness cannot be opened.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.faults = FaultQueue()
        self.tokens = Tokens(config)
        self._opted_out = frozenset(config.opted_out)
        self._witness = Witness(config.log) if config.log is not None else None
        self._lock = threading.Lock()  # guards all fields that are read; held only briefly
        self._accepting = threading.Lock()  # one acceptance at a time: witness and memory keep the same order
        self._numbers = itertools.count(1)
        # From the clock, so that no restart repeats an id; odd and above 2**53, so that no float can hold one.
        self._event_ids = itertools.count(time.time_ns() | 1, 2)
        self._start()

    def _start(self) -> None:
        balance = parse_amount(self.config.balance)
        self._account = Account(balance, self.config.clock, post_paid=self.config.post_paid)
        self._requests: list[RequestRecord] = []
        self._accepted: list[AcceptedMessage] = []
        self._epoch = f"{time.time_ns():x}"

    @property
    def balance(self) -> Decimal:
        """The balance that the service reports, in credits."""
        with self._lock:
            return self._account.reported

    @property
    def post_paid(self) -> bool:
        """Whether nothing is deducted."""
        with self._lock:
            return self._account.post_paid

    @property
    def requests(self) -> list[RequestRecord]:
        """All requests to the service, in the order in which they were decided."""
        with self._lock:
            return list(self._requests)

    @property
    def accepted(self) -> list[AcceptedMessage]:
        """All accepted messages, in the order of the witness."""
        with self._lock:
            return list(self._accepted)

    @property
    def accepted_messages(self) -> list[tuple[str, str]]:
        """Destination and text of all accepted messages, in the order of the witness."""
        return [(message.destination, message.content) for message in self.accepted]

    def accepted_page(self, limit: int, offset: int) -> tuple[int, list[AcceptedMessage]]:
        """Return some of the accepted messages without copying all of them.

        :param limit: maximum number of messages.
        :param offset: number of messages to skip, at least 0.
        :returns: the number of all accepted messages, and those of the page.
        """
        with self._lock:
            return len(self._accepted), self._accepted[offset : offset + limit]

    def snapshot(self) -> Snapshot:
        """Return the current counts and account, as fast with a million messages as with none."""
        faults = self.faults.version
        with self._lock:
            requests, messages = len(self._requests), len(self._accepted)
            account = self._account
            return Snapshot(self._epoch, requests, messages, account.reported, account.post_paid, faults)

    def added_since(self, epoch: str | None, requests: int, messages: int, limit: int) -> NewRecords:
        """Return the records that the caller does not have yet; all of them once a new epoch has begun.

        :param epoch: the epoch of the caller's records; None when the caller has none.
        :param requests: number of requests that the caller has.
        :param messages: number of messages that the caller has.
        :param limit: maximum number of requests, and of messages; more may remain.
        """
        with self._lock:
            if epoch != self._epoch:
                requests = messages = 0
            return NewRecords(
                self._epoch, self._requests[requests : requests + limit], self._accepted[messages : messages + limit]
            )

    def set_balance(self, balance: Decimal | float) -> None:
        """Set the balance of the pre-paid account.

        :param balance: credits, at least 0.
        :raises ValueError: when the balance is not a finite number of at least 0, or does not cover late charges.
        """
        amount = parse_amount(balance)
        with self._lock:
            self._account.set_balance(amount)

    def spend(self, amount: Decimal | float) -> None:
        """Deduct credits from the pre-paid account that no request cost, as another user of the account would.

        :param amount: credits, at least 0.
        :raises ValueError: when the amount is not a finite number of at least 0.
        :raises RefusalError: 403, ``InsufficientCredits``, when the balance, less late charges, does not cover it.
        """
        spent = parse_amount(amount, "amount")
        with self._lock:
            self._account.spend(spent)

    def top_up(self, amount: Decimal | float) -> None:
        """Add credits to the pre-paid account.

        :param amount: credits, at least 0.
        :raises ValueError: when the amount is not a finite number of at least 0.
        """
        added = parse_amount(amount, "amount")
        with self._lock:
            self._account.top_up(added)

    def apply_spend(self, fault: Fault) -> None:
        """Apply a ``spend`` fault to the account.

        :param fault: the fault; an amount above the balance takes all of it.
        """
        with self._lock:
            self._account.spend_at_most(Decimal(str(fault.amount)))

    def set_post_paid(self, post_paid: bool) -> None:  # noqa: FBT001 - the only argument of a setter
        """Turn deduction off or on.

        :param post_paid: True deducts nothing; False resumes with the pre-paid balance.
        """
        with self._lock:
            self._account.post_paid = post_paid

    def set_faults(self, faults: Iterable[Mapping[str, Any] | Fault]) -> None:
        """Replace the waiting faults.

        :param faults: the faults, in the order in which requests will meet them.
        :raises ValueError: when one of the faults is invalid; the waiting faults then stay.
        """
        parsed = [fault if isinstance(fault, Fault) else parse_fault(fault) for fault in faults]
        self.faults.clear()
        self.faults.add(parsed)

    def reset(self) -> None:
        """Remove requests, messages and faults, and restore balance and post-paid. The witness stays unchanged."""
        self.faults.clear()
        with self._accepting, self._lock:
            self._start()

    def next_request_number(self) -> int:
        """Return the number of a new request."""
        return next(self._numbers)

    def record_request(self, request: RequestRecord) -> None:
        """Record a request.

        :param request: the request and its response.
        """
        with self._lock:
            self._requests.append(request)

    def accept(self, request: SendRequest, number: int, charge_after: float = 0.0) -> SendResult:
        """Accept a send request as a whole. On return, the witness holds its messages on the disk.

        :param request: the well-formed request.
        :param number: the request's number.
        :param charge_after: seconds, at least 0, until the balance falls; the result has the balance before that.
        :raises RefusalError: 403, ``InsufficientCredits``, or 500 when the witness cannot be written; no message is
            accepted then.
        """
        filtered = filter_messages(request.messages, self._opted_out)
        with self._accepting:
            if request.test_mode:
                return SendResult(next(self._event_ids), filtered, self.balance, accepted=0)
            with self._lock:
                charge = self._account.charge(filtered.cost, charge_after)
                remaining = self._account.reported
            event_id, at = next(self._event_ids), datetime.now(timezone.utc)
            accepted = [
                AcceptedMessage.of(message, event_id=event_id, request=number, kind=request.kind, at=at)
                for message in filtered.sendable
            ]
            self._write(accepted, charge)
            with self._lock:
                self._accepted.extend(accepted)
        return SendResult(event_id, filtered, remaining, accepted=len(accepted))

    def close(self) -> None:
        """Close the witness. The memory can still be read."""
        if self._witness is not None:
            self._witness.close()

    def _write(self, messages: list[AcceptedMessage], charge: Charge) -> None:
        if self._witness is None or not messages:
            return
        try:
            self._witness.append(message.entry() for message in messages)
        except OSError as error:
            with self._lock:
                self._account.cancel(charge)
            raise RefusalError(500, ("Witness", f"the witness cannot be written: {error.strerror}")) from error
