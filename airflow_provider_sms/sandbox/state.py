"""What the sandbox remembers: balance, requests, accepted messages and the faults to come."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sandbox.config import SandboxConfig, as_money
from airflow_provider_sms.sandbox.faults import Fault, FaultQueue, parse_fault
from airflow_provider_sms.sandbox.records import Accepted, Receipt, Request
from airflow_provider_sms.sandbox.refusals import RefusalError
from airflow_provider_sms.sandbox.screening import screen
from airflow_provider_sms.sandbox.tokens import Tokens
from airflow_provider_sms.sandbox.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sms.sandbox.submissions import Submission

POST_PAID_BALANCE = Decimal(1000000)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a sandbox is: two marks are equal when nothing has happened between them.

    :param epoch: another one after each start and each :meth:`SandboxState.reset`.
    :param requests: requests to the service in this epoch.
    :param messages: messages that were accepted in it.
    :param balance: the credit that the service reports.
    :param post_paid: whether nothing is deducted.
    :param faults: version of the faults that wait.
    """

    epoch: str
    requests: int
    messages: int
    balance: Decimal
    post_paid: bool
    faults: int


@dataclass(frozen=True, slots=True)
class News:
    """What was added to the memory since somebody looked.

    :param epoch: the epoch that it belongs to.
    :param requests: requests, in the order in which they were decided.
    :param messages: accepted messages, in the order of the witness; those of a request are neighbours.
    """

    epoch: str
    requests: list[Request]
    messages: list[Accepted]


class SandboxState:
    """The memory of one sandbox. Every method may be called from any thread.

    :param config: how it starts, and what :meth:`reset` goes back to.
    :raises OSError: when the witness cannot be opened.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.faults = FaultQueue()
        self.tokens = Tokens(config)
        self._opted_out = frozenset(config.opted_out)
        self._witness = Witness(config.log) if config.log is not None else None
        self._lock = threading.Lock()  # guards what is read; held for moments only
        self._turn = threading.Lock()  # one acceptance at a time: the witness keeps the order of the messages
        self._numbers = itertools.count(1)
        # By the clock, so that a restart repeats none; odd and above 2**53, so that none survives as a float.
        self._event_ids = itertools.count(time.time_ns() | 1, 2)
        self._start()

    def _start(self) -> None:
        self._balance = as_money(self.config.balance)
        self._post_paid = self.config.post_paid
        self._requests: list[Request] = []
        self._accepted: list[Accepted] = []
        self._epoch = f"{time.time_ns():x}"

    @property
    def balance(self) -> Decimal:
        """The credit that the service reports."""
        with self._lock:
            return self._reported_balance()

    @property
    def post_paid(self) -> bool:
        """Whether nothing is deducted."""
        with self._lock:
            return self._post_paid

    @property
    def requests(self) -> list[Request]:
        """Every request to the service, in the order in which they were decided."""
        with self._lock:
            return list(self._requests)

    @property
    def accepted(self) -> list[Accepted]:
        """Every accepted message, in the order of the witness."""
        with self._lock:
            return list(self._accepted)

    @property
    def accepted_messages(self) -> list[tuple[str, str]]:
        """Destination and text of every accepted message, in the order of the witness."""
        return [(message.destination, message.content) for message in self.accepted]

    def page(self, limit: int, offset: int) -> tuple[int, list[Accepted]]:
        """Give a stretch of the accepted messages without copying all of them.

        :param limit: messages to give, at most.
        :param offset: messages to leave out first; negative counts from the newest.
        :returns: the number of all accepted messages, and the stretch.
        """
        with self._lock:
            total = len(self._accepted)
            start = offset if offset >= 0 else max(0, total + offset)
            return total, self._accepted[start : start + limit]

    def mark(self) -> Mark:
        """Tell how far the sandbox is, whatever it remembers: this costs the same with a million messages."""
        faults = self.faults.version
        with self._lock:
            requests, messages = len(self._requests), len(self._accepted)
            return Mark(self._epoch, requests, messages, self._reported_balance(), self._post_paid, faults)

    def since(self, epoch: str | None, requests: int, messages: int, limit: int) -> News:
        """Give what was added after a place, or all from the start when the epoch is another by now.

        :param epoch: the epoch that the place is in; None for the start.
        :param requests: requests that are known.
        :param messages: messages that are known.
        :param limit: requests, and messages, to give at most: there may be more.
        """
        with self._lock:
            if epoch != self._epoch:
                requests = messages = 0
            return News(
                self._epoch, self._requests[requests : requests + limit], self._accepted[messages : messages + limit]
            )

    def set_balance(self, balance: Decimal | float) -> None:
        """Change the credit of the pre-paid account.

        :param balance: credit, at least 0.
        :raises ValueError: when it is not a number of at least 0.
        """
        amount = as_money(balance)
        with self._lock:
            self._balance = amount

    def set_post_paid(self, post_paid: bool) -> None:  # noqa: FBT001 - the only argument of a setter
        """Turn deduction off or on.

        :param post_paid: True deducts nothing; False goes on with the pre-paid credit.
        """
        with self._lock:
            self._post_paid = post_paid

    def set_faults(self, faults: Iterable[Mapping[str, Any] | Fault]) -> None:
        """Replace the faults that wait.

        :param faults: what goes wrong with the next requests, in order.
        :raises ValueError: when one of them means nothing; then those that wait stay.
        """
        parsed = [fault if isinstance(fault, Fault) else parse_fault(fault) for fault in faults]
        self.faults.clear()
        self.faults.add(parsed)

    def reset(self) -> None:
        """Forget requests, messages and faults, and restore balance and post-paid. The witness stays."""
        self.faults.clear()
        with self._turn, self._lock:
            self._start()

    def next_number(self) -> int:
        """Give a request its number."""
        return next(self._numbers)

    def note(self, request: Request) -> None:
        """Remember a request.

        :param request: the request as it was answered.
        """
        with self._lock:
            self._requests.append(request)

    def accept(self, submission: Submission, number: int) -> Receipt:
        """Accept a send request as a whole. When this returns, the witness holds its messages on the disk.

        :param submission: the well-formed request.
        :param number: the request's number.
        :raises RefusalError: 403, ``InsufficientCredits``, or 500 when the witness cannot be written; nothing is
            accepted then.
        """
        screened = screen(submission.messages, self._opted_out)
        with self._turn:
            if submission.test_mode:
                return Receipt(next(self._event_ids), screened, self.balance, accepted=0)
            charge, remaining = self._charge(screened.cost)
            event_id, at = next(self._event_ids), datetime.now(timezone.utc)
            messages = [
                Accepted.of(sent, event_id=event_id, request=number, kind=submission.kind, at=at)
                for sent in screened.priced
            ]
            self._write(messages, charge)
            with self._lock:
                self._accepted.extend(messages)
        return Receipt(event_id, screened, remaining, accepted=len(messages))

    def close(self) -> None:
        """Close the witness. What is remembered can still be read."""
        if self._witness is not None:
            self._witness.close()

    def _charge(self, cost: Decimal) -> tuple[Decimal, Decimal]:
        with self._lock:
            charge = Decimal(0) if self._post_paid else cost
            if charge > self._balance:
                raise RefusalError(403, ("InsufficientCredits", "the balance does not cover the request"))
            self._balance -= charge
            return charge, self._reported_balance()

    def _write(self, messages: list[Accepted], charge: Decimal) -> None:
        if self._witness is None or not messages:
            return
        try:
            self._witness.append(message.entry() for message in messages)
        except OSError as error:
            with self._lock:
                self._balance += charge
            raise RefusalError(500, ("Witness", f"the witness cannot be written: {error.strerror}")) from error

    def _reported_balance(self) -> Decimal:
        return POST_PAID_BALANCE if self._post_paid else self._balance
