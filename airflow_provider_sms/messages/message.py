"""One text to one person, as the hook takes it: the documented import path of :class:`Message`."""

from __future__ import annotations

from dataclasses import dataclass

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
