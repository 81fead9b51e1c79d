"""The messages of one request: a batch until it is claimed, then a request in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_sms.messages.message import Outgoing


@dataclass(slots=True)
class RequestBatch:
    """The messages of one request.

    :param attempt: how often the request was posted since the service last took any message of the send.
    :param taken_before: how many messages of the send the service had taken by then.
    :param turned_away: how often the service did not take the request.
    :param unavailable: how often the service responded to it with 503.
    :param due: when it may be posted again, in seconds of the sender's monotonic clock.
    """

    messages: Outgoing
    attempt: int = 0
    taken_before: int = 0
    turned_away: int = 0
    unavailable: int = 0
    due: float = 0.0

    def keep(self, won: Sequence[int]) -> list[bytes]:
        """Keep the messages at these positions, and return the keys of the others, such as another request holds."""
        every = self.messages
        if len(won) == len(every):
            return []
        self.messages = every.at(won)
        kept = set(self.messages.keys)
        return [key for key in every.keys if key not in kept]


@dataclass(frozen=True, slots=True)
class InFlightRequest:
    """A batch that is claimed, and posted under that claim.

    :param deadline: when others may call the claim unknown, seconds since the epoch.
    :param lapses_at: the same by a clock that nobody can set, :attr:`CampaignLedger.elapsed`.
    :param since: when it was claimed, by the sender's monotonic clock.
    :param alone: whether it goes alone, since responses were lost.
    :param asks: whether the service must answer a free question first.
    """

    request_id: int
    batch: RequestBatch
    deadline: float
    lapses_at: float
    since: float
    alone: bool = False
    asks: bool = False


class Chunks:
    """The messages of a pass, those of one request at a time, of which the next ones can be looked at."""

    def __init__(self, messages: Iterable[Outgoing]) -> None:
        self._rest: Iterator[Outgoing] = iter(messages)
        self._next: Outgoing | None = None

    @property
    def any(self) -> bool:
        """Whether there is another request; this reads the next one."""
        if self._next is None:
            self._next = next(self._rest, None)
        return self._next is not None

    def take(self) -> Outgoing:
        """Return the messages of the next request; there must be one."""
        taken = self._next or next(self._rest)
        self._next = None
        return taken
