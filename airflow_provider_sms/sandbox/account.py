"""The account: its balance, and the charges that are still to come.

No thread waits for a late charge. It is applied when the balance is next needed, so an account that nobody looks at
does nothing, and a test may set the clock.
"""

from __future__ import annotations

import heapq
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.sandbox.errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Callable

POST_PAID_BALANCE = Decimal(1000000)
"""The balance that the service reports for every post-paid account."""


class Charge(NamedTuple):
    """What one request costs.

    :param due: when the balance falls, by the account's clock.
    :param amount: credits; 0 on a post-paid account.
    """

    due: float
    amount: Decimal


class Account:
    """A balance from which requests, and others, take credits. The caller guards it with a lock.

    :param balance: initial balance in credits, at least 0.
    :param post_paid: True deducts nothing and reports a balance of 1000000.
    :param clock: function that returns seconds and never goes back.
    """

    def __init__(self, balance: Decimal, clock: Callable[[], float], *, post_paid: bool) -> None:
        self.post_paid = post_paid
        self._balance = balance
        self._clock = clock
        self._late: list[Charge] = []  # a heap: the next one to fall due comes first

    @property
    def reported(self) -> Decimal:
        """The balance that the service reports, in credits. Late charges that are not due are not deducted yet."""
        self._apply_due_charges()
        return POST_PAID_BALANCE if self.post_paid else self._balance

    def charge(self, cost: Decimal, after: float = 0.0) -> Charge:
        """Charge a request, and return the charge.

        :param cost: credits.
        :param after: seconds, at least 0, until the balance falls; until then nothing else can use the credits.
        :raises RefusalError: 403, ``InsufficientCredits``.
        """
        amount = Decimal(0) if self.post_paid else cost
        if amount > self._available():
            raise RefusalError(403, ("InsufficientCredits", "the balance does not cover the request"))
        charge = Charge(self._clock() + after, amount)
        heapq.heappush(self._late, charge)
        return charge

    def cancel(self, charge: Charge) -> None:
        """Undo a charge, whether or not it has been deducted.

        :param charge: a charge that :meth:`charge` returned.
        """
        if charge in self._late:
            self._late.remove(charge)
            heapq.heapify(self._late)
        else:
            self._balance += charge.amount

    def set_balance(self, balance: Decimal) -> None:
        """Set the pre-paid balance.

        :param balance: credits; late charges are deducted from them.
        :raises ValueError: when the balance does not cover the late charges.
        """
        self._apply_due_charges()
        if balance < self._to_come():
            raise ValueError(f"a balance must cover the credits that are still to be charged: {self._to_come()}")
        self._balance = balance

    def spend(self, amount: Decimal) -> None:
        """Deduct credits that no request of this service cost. A post-paid account deducts nothing.

        :param amount: credits, at least 0.
        :raises RefusalError: 403, ``InsufficientCredits``.
        """
        if self.post_paid:
            return
        if amount > self._available():
            raise RefusalError(403, ("InsufficientCredits", "the balance does not cover the amount to spend"))
        self._balance -= amount

    def spend_at_most(self, amount: Decimal) -> None:
        """Deduct credits that no request of this service cost, or all that is left when that is less.

        :param amount: credits; a negative amount is added instead.
        """
        if amount < 0:
            self.top_up(-amount)
        else:
            self.spend(min(amount, self._available()))

    def top_up(self, amount: Decimal) -> None:
        """Add credits. A post-paid account has none to add to.

        :param amount: credits, at least 0.
        """
        if not self.post_paid:
            self._balance += amount

    def _available(self) -> Decimal:
        self._apply_due_charges()
        return self._balance - self._to_come()

    def _to_come(self) -> Decimal:
        return sum((charge.amount for charge in self._late), Decimal(0))

    def _apply_due_charges(self) -> None:
        while self._late and self._late[0].due <= self._clock():
            self._balance -= heapq.heappop(self._late).amount
