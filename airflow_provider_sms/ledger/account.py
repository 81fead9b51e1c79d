"""What the ledger knows of an account, and keeps of what its balance tells: plain records.

:mod:`airflow_provider_sms.sending.evidence` judges by them, and :mod:`~airflow_provider_sms.ledger.balances` reads and
writes them. Operators load this module, which does without SQLAlchemy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from decimal import Decimal

BALANCE: Final = "balance"
"""Stands in for a person in ``sms_request.decided_by`` where the balance told what became of the request."""

CHARGED: Final = "charged"
NOT_CHARGED: Final = "not_charged"
UNDECIDED: Final = "undecided"


class Account(NamedTuple):
    """The account that a campaign is sent with.

    :param key: identifies the account, 32 hex digits; see ``ClientSettings.account``.
    :param cost: returns the credits that messages are expected to cost, from their destinations and SMS parts.
    """

    key: str
    cost: Callable[[Sequence[str | None], Sequence[int | None]], Decimal]


@dataclass(frozen=True, slots=True)
class Reading:
    """A balance in credits, read between two moments, seconds since the epoch by the ledger's clock."""

    asked_at: float
    read_at: float
    amount: Decimal


@dataclass(frozen=True, slots=True)
class BilledRequest:
    """A request that its account was charged for between two moments, if at all.

    :param closed_at: when its response came; without one, when it is settled: the deadline of its claim.
    :param least: the fewest credits that all of it costs.
    :param most: the most credits that all of it costs; infinite for a group.
    :param stated: the credits that its response stated; None without a response.
    """

    id: int
    claimed_at: float
    closed_at: float
    least: Decimal
    most: Decimal
    stated: Decimal | None = None


class KeptEvidence(NamedTuple):
    """What the balance tells of a request whose response was lost, as the ledger keeps it.

    :param verdict: ``charged``, ``not_charged`` or ``undecided``.
    :param read_at: when the balance that it rests on was read, seconds since the epoch.
    :param amount: credits charged for it, as a decimal; None where that is not known.
    """

    verdict: str
    words: str
    read_at: float
    amount: str | None = None

    def written(self) -> str:
        """Return it as the ledger stores it: JSON."""
        return json.dumps(self._asdict())


def kept_evidence(written: str | None) -> KeptEvidence | None:
    """Return evidence that the ledger has stored; None where it has none."""
    return None if written is None else KeptEvidence(**json.loads(written))


def verdict_words(evidence: KeptEvidence | None) -> str:
    """Return a verdict in words: ``charged``, ``not charged`` or ``undecided``; empty where there is no evidence."""
    return "" if evidence is None else evidence.verdict.replace("_", " ")


def sentences(evidence: Iterable[KeptEvidence | None]) -> list[str]:
    """Return the words of evidence in order, each once, since requests that were judged together share them."""
    return list(dict.fromkeys(each.words for each in evidence if each is not None and each.words))
