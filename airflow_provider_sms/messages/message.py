"""Messages: one, as the hook takes it, whose import path is documented, and those of a request, as the engine does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_number

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Message"]

MAX_MESSAGES = 100
"""Messages that one request may carry, by the service's contract."""
KEY_BYTES = 16
"""The size of a message key."""


@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """One text to one person. Its repr shows neither: it may end up in a log or a traceback.

    :param content: the text, as the person will read it.
    :param destination: the number: digits with country code, no separators, no plus.
    """

    content: str
    destination: str

    def __repr__(self) -> str:
        masked = mask_number(self.destination)
        characters = by_count(len(self.content), "character")
        return f"Message(content=<{len(self.content)} {characters}>, destination={masked!r})"


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
