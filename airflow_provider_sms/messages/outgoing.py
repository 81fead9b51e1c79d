"""The messages of a request, as the engine sends them: in a module of its own, since its name is not public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, repr=False)
class Outgoing:
    """Messages that are ready to be claimed, column by column: an object for each would cost more than its text.

    :param keys: identify the messages within their campaign, 16 bytes each.
    :param destinations: digits with country code; None for a group.
    :param parts: SMS parts; None for a message to a group, since nobody knows how many people are in it.
    """

    keys: Sequence[bytes]
    destinations: Sequence[str | None]
    contents: Sequence[str]
    parts: Sequence[int | None]

    def __len__(self) -> int:
        return len(self.keys)

    def at(self, places: Sequence[int]) -> Outgoing:
        """Return the messages at these places."""
        columns = (self.keys, self.destinations, self.contents, self.parts)
        return Outgoing(*([column[place] for place in places] for column in columns))  # type: ignore[arg-type]  # mixed
