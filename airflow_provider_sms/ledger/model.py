"""The words of the ledger: who claims, which request holds a message, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Stored(str, Enum):
    """A word that the ledger stores.

    A member *is* its string to every driver, to JSON and as a dictionary's key, and is written as its string: how
    Python formats an enum that is mixed with ``str`` differs between 3.10 and 3.11.
    """

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]  # Enum declares it more narrowly


class RequestState(_Stored):
    """The state of a request, in ``sms_request.state``. :mod:`~airflow_provider_sms.ledger.claims` draws its changes.

    Past its deadline a claim counts as unknown, whether that is written or not: see
    :func:`~airflow_provider_sms.ledger.transitions.state_at`.
    """

    CLAIMED = "claimed"
    """Its process may post it, and may still live."""
    ACCEPTED = "accepted"
    """The service took it, or a person or the balance said so."""
    UNKNOWN = "unknown"
    """It may have been sent, and nobody posts its messages again unless somebody decides so."""
    NOT_SENT = "not_sent"
    """It was not sent, and holds no message any more."""
    SUPERSEDED = "superseded"
    """It may have been sent, and a policy lets its messages be sent again; it holds none any more."""


CLAIMED: Final = RequestState.CLAIMED
ACCEPTED: Final = RequestState.ACCEPTED
UNKNOWN: Final = RequestState.UNKNOWN
NOT_SENT: Final = RequestState.NOT_SENT
SUPERSEDED: Final = RequestState.SUPERSEDED

LAPSED: Final = "no outcome was recorded before the deadline: the sending process ended or lost the response"
"""The reason of a request whose claim has lapsed."""


class AttemptState(_Stored):
    """What an attempt, or a leg of one, says of itself in ``sms_attempt.state``: at most 30 characters."""

    CHECKING = "checking"
    """It reads its table and plans, before the first request."""
    SENDING = "sending"
    PAUSED = "paused"
    """A person has paused its campaign, and its process waits."""
    WAITING_FOR_CREDIT = "waiting for credit"
    WAITING_FOR_HOURS = "waiting for hours"
    """It is deferred until people may be texted."""
    ENDED = "ended"
    FAILED = "failed"


DEFERRED: Final = (AttemptState.WAITING_FOR_CREDIT, AttemptState.WAITING_FOR_HOURS)
"""States of an attempt that has given up its slot, and goes on later."""


FORGOTTEN_NUMBER: Final = 0
"""Stands in for a forgotten person's number in ``sms_message.destination``: no number is 0."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: one attempt of one task instance, or one leg of an attempt that was deferred.

    :param map_index: index of a mapped task, -1 for one that is not mapped.
    """

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    host: str
    pid: int

    def columns(self) -> dict[str, str | int]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a request's messages, or as many of them as were free.

    :param request_id: the new request; None when nothing was won.
    :param won: the positions of the messages that may be POSTed under this claim, in order.
    """

    request_id: int | None
    won: Sequence[int]
    deadline: float


class Holder(NamedTuple):
    """A request, as one that holds a message, and how it stands now.

    :param state: ``claimed`` only while its process may still post it.
    :param awaited: whether another process, whichever attempt it runs, may still record its outcome, even if its claim
        has lapsed.
    """

    request_id: int
    state: str
    mine: bool = False
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request.

    :param reason: why it is unknown or was not sent; no number, text or token.
    :param response: the body of the response as the ledger keeps it, JSON: redacted, or as received.
    """

    request_id: int
    state: RequestState
    http_status: int | None = None
    event_id: int | None = None
    messages: int | None = None
    parts: int | None = None
    cost: str | None = None
    reason: str | None = None
    response: str | None = None


class SentRequest(NamedTuple):
    """What a request adds to the sums of its attempt.

    :param state: ``accepted``, ``not_sent`` if the service took nothing of it, otherwise one that may have been sent.
    """

    state: str
    submitted: int
    taken: int | None
    parts: int | None
    cost: str | None
    finished_at: float | None
    response: str | None


class TextedTwice(NamedTuple):
    """Messages of an accepted request that another request holds, since they had become free before its response came.

    :param other_id: the request that holds its messages.
    :param is_sure: whether the other one was accepted, too; else it may have been sent.
    """

    request_id: int
    other_id: int
    is_sure: bool
    messages: int

    def __str__(self) -> str:
        """Return it in words."""
        if self.is_sure:
            return f"texted twice: {self.messages} of its messages went out with request {self.other_id}, too"
        return f"may have been texted twice: request {self.other_id} claimed {self.messages} of its messages, too"
