"""The messages of one request: a batch until it is claimed, then a request in flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.model import Chunk
from airflow_provider_sms.messages.outgoing import MessageColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.messages.outgoing import Outgoing


@dataclass(slots=True)
class RequestBatch:
    """The messages of one request.

    :param take_over: the unknown requests that some messages are taken over from, by key.
    :param attempt: how often the request was posted since the service last took any message of the send.
    :param accepted_before: how many messages of the send the service had taken by then.
    :param turned_away: how often the service did not take the request.
    :param unavailable: how often the service responded to it with 503.
    :param due: when it may be posted again, in seconds of the sender's monotonic clock.
    """

    messages: Sequence[Outgoing]
    take_over: Mapping[bytes, int]
    attempt: int = 0
    accepted_before: int = 0
    turned_away: int = 0
    unavailable: int = 0
    due: float = 0.0
    _chunk: Chunk | None = field(default=None, init=False, repr=False)

    @property
    def chunk(self) -> Chunk:
        """The messages as the ledger claims them."""
        if self._chunk is None:
            columns = MessageColumns.of(self.messages)
            self._chunk = Chunk(columns.keys, columns.destinations, self.take_over, columns.parts)
        return self._chunk

    def keep(self, won: Sequence[int]) -> list[Outgoing]:
        """Keep some messages, and return the others, such as those that another request holds.

        :param won: the positions of the messages to keep, in order.
        """
        every = self.messages
        if len(won) == len(every):
            return []
        self._chunk = None
        self.messages = [every[position] for position in won]
        kept = {outgoing.key for outgoing in self.messages}
        return [outgoing for outgoing in every if outgoing.key not in kept]

    def turn_away(self, accepted: int, *, unavailable: bool) -> None:
        """Record that the service did not take the request; if it took others meanwhile, it throttles, and is up.

        :param accepted: how many messages of the send the service has taken by now.
        :param unavailable: whether the response was a 503.
        """
        self.turned_away += 1
        self.unavailable += unavailable
        if accepted > self.accepted_before:
            self.attempt, self.accepted_before = 1, accepted


@dataclass(frozen=True, slots=True)
class InFlightRequest:
    """A batch that is claimed, and posted under that claim.

    :param deadline: when others may call the claim unknown, seconds since the epoch.
    :param lapses_at: the same by a clock that nobody can set, :attr:`CampaignLedger.elapsed`.
    :param alone: whether it goes alone, since responses were lost.
    :param asks: whether the service must answer a free question first.
    """

    request_id: int
    batch: RequestBatch
    deadline: float
    lapses_at: float
    alone: bool = False
    asks: bool = False
