"""What the sender keeps of a request, from its messages to its claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.model import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.messages.outgoing import Outgoing


@dataclass(slots=True)
class RequestBatch:
    """The messages of one request.

    :param take_over: the unknown requests that are to give theirs up.
    :param attempt: how often they were posted since the service last took anything.
    :param turned_away: how often the service did not take them.
    :param unavailable: how often the service said 503.
    :param accepted_before: the messages that it had taken then.
    :param due: when they may be posted again, seconds since the epoch.
    """

    messages: Sequence[Outgoing]
    take_over: Mapping[bytes, int]
    attempt: int = 0
    accepted_before: int = 0
    turned_away: int = 0
    unavailable: int = 0
    due: float = 0.0

    @property
    def chunk(self) -> Chunk:
        """Give them as the ledger claims them."""
        messages = self.messages
        return Chunk([m.key for m in messages], [m.destination for m in messages], self.take_over)

    def keep(self, won: Sequence[int], capped: Sequence[int] = ()) -> list[Outgoing]:
        """Keep the messages that were won, and give those that somebody else holds.

        :param won: the positions of those to keep, in order.
        :param capped: the positions of those that go to nobody now.
        """
        every = self.messages
        if len(won) == len(every):
            return []
        self.messages = [every[position] for position in won]
        settled = {outgoing.key for outgoing in self.messages} | {every[position].key for position in capped}
        return [outgoing for outgoing in every if outgoing.key not in settled]

    def turn_away(self, accepted: int, *, unavailable: bool) -> None:
        """Note that the service did not take them; where it took others meanwhile, it throttles, and is not away.

        :param accepted: the messages that it has taken by now.
        :param unavailable: whether it said 503.
        """
        self.turned_away += 1
        self.unavailable += unavailable
        if accepted > self.accepted_before:
            self.attempt, self.accepted_before = 1, accepted


@dataclass(frozen=True, slots=True)
class InFlightRequest:
    """A claimed batch on its way.

    :param alone: whether it goes alone, since answers were lost.
    :param asks: whether the service must answer a free question first.
    """

    request_id: int
    batch: RequestBatch
    deadline: float
    alone: bool = False
    asks: bool = False
