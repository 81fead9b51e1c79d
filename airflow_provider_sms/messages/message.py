"""One text to one person, as the hook takes it and as the engine sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_number


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


class Outgoing(NamedTuple):
    """A message that is ready to be claimed. Its repr shows neither text nor number.

    :param key: identifies the message within its campaign, 16 bytes.
    :param destination: digits with country code; None for a group.
    :param row: index in the source, from 0.
    :param parts: SMS parts; None for a message to a group, since nobody knows how many people are in it.
    """

    key: bytes
    destination: str | None
    content: str
    row: int = 0
    parts: int | None = None

    def __repr__(self) -> str:
        return f"Outgoing(row={self.row})"
