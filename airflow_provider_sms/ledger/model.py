"""The words of the ledger: who claims what, who holds what, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLAIMED = "claimed"
ACCEPTED = "accepted"
UNKNOWN = "unknown"
NOT_SENT = "not_sent"


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: one try of one task instance.

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
        """Give the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class Holder(NamedTuple):
    """The request that holds a message.

    :param state: ``claimed`` (its process may still live), ``accepted`` or ``unknown``.
    :param mine: whether this try made the request, and not before it waited.
    :param parked: whether this try made it before it waited.
    :param ahead: whether it was claimed at a time that is still to come, by a clock that ran ahead.
    """

    request_id: int
    state: str
    mine: bool
    parked: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """The messages of one request to be.

    :param keys: message keys, 16 bytes each, without repeats.
    :param destinations: digits with country code, one for each key; None for a group.
    :param take_over: for keys that an unknown request holds and that are to be sent again, the id of that request.
    """

    keys: Sequence[bytes]
    destinations: Sequence[str | None]
    take_over: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of claiming a chunk.

    :param request_id: the new request; None when nothing was won.
    :param won: the positions in the chunk that may be POSTed under this claim, in order.
    :param deadline: when others may call it unknown, seconds since the epoch.
    :param capped: the positions of those who must not be texted yet, because of a frequency cap. Nobody holds their
        messages now, or the unknown request from which they were to be taken over still does.
    """

    request_id: int | None
    won: Sequence[int]
    deadline: float
    capped: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request.

    :param state: ``accepted``, ``unknown`` or ``not_sent``.
    :param reason: why, for the two latter; no number, text or token.
    :param response: the body of the answer as received, JSON.
    :param chunk: what was posted, so that an answer that comes late can take its messages back; None where no answer
        came.
    """

    request_id: int
    state: str
    http_status: int | None = None
    event_id: int | None = None
    messages: int | None = None
    parts: int | None = None
    cost: str | None = None
    reason: str | None = None
    response: str | None = None
    chunk: Chunk | None = field(default=None, repr=False)


class TextedTwice(NamedTuple):
    """Messages of a request whose answer came after others had claimed its messages.

    :param request_id: the request, which the service accepted after all.
    :param other_id: the one that claimed its messages meanwhile.
    :param is_sure: whether that one was accepted, too; else it may have been sent.
    :param messages: how many.
    """

    request_id: int
    other_id: int
    is_sure: bool
    messages: int

    def __str__(self) -> str:
        """Return it in words, of the request."""
        if self.is_sure:
            return f"texted twice: {self.messages} of its messages went out with request {self.other_id}, too"
        return f"may have been texted twice: request {self.other_id} claimed {self.messages} of its messages, too"
