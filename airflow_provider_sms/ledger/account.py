"""What the ledger knows of an account: its balance as it was seen, and the requests that may have been charged for.

From these, :mod:`airflow_provider_sms.sending.evidence` infers which unknown requests the service took.
:mod:`~airflow_provider_sms.ledger.account_history` reads and writes its records; operators load this module, which does
without SQLAlchemy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

BALANCE: Final = "balance"
"""Stands in for a person in ``sms_decision.decided_by`` where the balance told what became of the request."""


class Account(NamedTuple):
    """The account that a campaign is sent with.

    :param key: identifies the account, 32 hex digits; see ``ClientSettings.account``.
    :param least_price: the fewest credits that one SMS part is expected to cost.
    :param most_price: the most credits that one SMS part is expected to cost.
    """

    key: str
    least_price: Decimal
    most_price: Decimal


@dataclass(frozen=True, slots=True)
class Observation:
    """A balance, and the interval in which it was read; seconds since the epoch, by the ledger's clock.

    :param amount: credits.
    :param charged: credits charged for the request whose response stated it; 0 where the balance was asked for.
    :param begin: the balance was read, and its request charged for, after this moment.
    :param end: the balance was read before this moment.
    :param request_id: the request; None where the balance was asked for.
    """

    amount: Decimal
    charged: Decimal
    begin: float
    end: float
    request_id: int | None = None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request without a response that tells whether it was charged for; times are as in :class:`Observation`.

    :param least: the fewest credits that it cost if the service took any of it; 0 means that it may have cost nothing,
        or, where ``whole`` is None, any amount above 0.
    :param most: the most credits that it cost; None means any amount.
    :param whole: the fewest credits that it cost if the service took all of it; None where its size is not known.
    :param begin: it was posted after this moment.
    :param settled: it was charged for before this moment, if at all.
    :param is_asked: whether a verdict is wanted. Otherwise, it only serves to explain movements of the balance.
    :param is_charged: whether it is known to have been charged for.
    :param in_flight: whether its process may still record an outcome.
    """

    request_id: int
    least: Decimal
    most: Decimal | None
    whole: Decimal | None
    begin: float
    settled: float
    is_asked: bool = True
    is_charged: bool = False
    in_flight: bool = False


@dataclass(frozen=True, slots=True)
class AccountHistory:
    """What is known of an account around the time of some requests for which no response tells the charge."""

    observations: Sequence[Observation]
    open_requests: Sequence[OpenRequest]


CHARGED: Final = "charged"
NOT_CHARGED: Final = "not_charged"
UNDECIDED: Final = "undecided"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the balance tells of a request whose response was lost.

    :param verdict: ``charged``, ``not_charged`` or ``undecided``.
    :param words: the verdict and its sum for people, in a sentence or two without anybody's number.
    :param amount: credits charged for it; None where the balance does not tell how many.
    :param in_part: whether less was charged than all of it costs, so that the service left some people out.
    :param waits_for: requests of other processes that may be under way, and that keep this one undecided.
    :param settles_at: until when an undecided request may still be charged for, since no balance was read after that
        moment; None where a later balance changes nothing. Of a charged one, when it had been charged for; None where
        that is not clear.
    """

    verdict: str
    words: str
    amount: Decimal | None = None
    in_part: bool = False
    waits_for: frozenset[int] = frozenset()
    settles_at: float | None = None

    def kept(self, read_at: float) -> KeptEvidence:
        """Return the evidence as the ledger keeps it.

        :param read_at: when the balance was read, seconds since the epoch.
        """
        amount = None if self.amount is None else f"{self.amount.normalize():f}"
        return KeptEvidence(self.verdict, self.words, read_at, self.in_part, self.settles_at, amount)


class KeptEvidence(NamedTuple):
    """Evidence as the ledger keeps it with a request.

    :param verdict: ``charged``, ``not_charged`` or ``undecided``.
    :param words: the evidence in words, for people.
    :param read_at: when the balance that it rests on was read, seconds since the epoch.
    :param in_part: whether less was charged than all of the request costs, so that some people were left out.
    :param settles_at: until when it may have been charged for, as the task saw it; None where that is not known.
    :param amount: credits charged for it, as a decimal; None where that is not known.
    """

    verdict: str
    words: str
    read_at: float
    in_part: bool = False
    settles_at: float | None = None
    amount: str | None = None
