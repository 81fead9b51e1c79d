"""The estimate of a table before its first message goes out: SMS parts, cost, and characters that cost more."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.messages.parts import BASIC, EXTENSION
from airflow_provider_sms.recipients.columns import chosen, integers, mask
from airflow_provider_sms.service.redaction import storable

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from airflow_provider_sms.planning.prices import Prices

MOST_CHARACTERS = 1000
"""Different characters that are counted; the rest are not, so that memory is bounded."""
MOST_SHOWN = 10
"""Characters that an XCom names."""

_IN_SEPTETS = f"^[{re.escape(BASIC + EXTENSION)}]*$"
_SEPTETS = f"[{re.escape(BASIC + EXTENSION)}]+"
_LABELS = {"Cc": "control", "Cs": "surrogate", "Co": "private use"}


@dataclass(slots=True)
class EncodingTotals:
    """Messages that are sent in one encoding, and their SMS parts."""

    messages: int = 0
    parts: int = 0


class ForcingCharacter(NamedTuple):
    """A character outside the GSM alphabet (GSM 03.38), which makes a whole text UCS-2."""

    character: str
    code: str
    """Such as ``U+2019``."""
    name: str
    """The character's name in Unicode."""
    messages: int
    """Messages that contain it."""


@dataclass(slots=True)
class Estimate:
    """Figures about messages, added up in memory that does not grow with them; they hold no text and no phone number.

    :param prices: those of an SMS part.
    :param cost: credits, by these prices; the service may charge differently.
    :param longest: characters of the longest text.
    :param longest_parts: SMS parts of the longest text.
    :param most_parts: SMS parts of the message that takes the most.
    :param most_parts_row: index in the source of the first message with so many; None means that there is no message.
    :param characters: characters that make texts UCS-2, each with the number of messages that contain it.
    """

    prices: Prices
    cost: Decimal = Decimal(0)
    gsm: EncodingTotals = field(default_factory=EncodingTotals)
    ucs2: EncodingTotals = field(default_factory=EncodingTotals)
    longest: int = 0
    longest_parts: int = 0
    most_parts: int = 0
    most_parts_row: int | None = None
    characters: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        """Messages in both encodings."""
        return self.gsm.messages + self.ucs2.messages

    @property
    def parts(self) -> int:
        """SMS parts of all messages."""
        return self.gsm.parts + self.ucs2.parts

    @own_decimals()
    def add(self, rows: npt.NDArray[np.int64], messages: pa.RecordBatch) -> None:
        """Count some messages.

        :param rows: their indices in the source.
        :raises InputError: there is no price for a number, which the error shows masked.
        """
        contents, parts = messages.column("content"), integers(messages.column("parts"))
        if not len(rows):
            return
        self.cost += self.prices.total(messages.column("destination"), parts)
        ucs2 = chosen(pc.invert(pc.match_substring_regex(contents, _IN_SEPTETS)))
        for totals, own in ((self.gsm, ~ucs2), (self.ucs2, ucs2)):
            totals.messages += int(np.count_nonzero(own))
            totals.parts += int(parts[own].sum())
        lengths = integers(pc.utf8_length(contents))
        longest, most = int(lengths.argmax()), int(parts.argmax())
        if self.most_parts_row is None or lengths[longest] > self.longest:
            self.longest, self.longest_parts = int(lengths[longest]), int(parts[longest])
        if parts[most] > self.most_parts:
            self.most_parts, self.most_parts_row = int(parts[most]), int(rows[most])
        foreign = pc.replace_substring_regex(contents.filter(mask(ucs2)), _SEPTETS, "")
        for each in pc.value_counts(foreign).to_pylist():
            for character in set(each["values"]):
                if character in self.characters or len(self.characters) < MOST_CHARACTERS:
                    self.characters[character] += each["counts"]

    def forcing(self) -> list[ForcingCharacter]:
        """Return the characters that make texts UCS-2, the most frequent first."""
        ordered = sorted(self.characters.items(), key=lambda counted: (-counted[1], counted[0]))
        return [ForcingCharacter(each, f"U+{ord(each):04X}", _name(ord(each)), count) for each, count in ordered]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as an XCom holds them: of one size, however many messages there are, and without any text.

        :returns: ``messages``, ``parts`` and ``cost``; the first two by ``encodings``; the ``longest`` text; the
            ``most_parts`` of one message and its row, None where there is none; and the ten most frequent characters
            ``forcing`` texts to be UCS-2. A NUL is shown as a question mark: PostgreSQL takes no XCom that has one.
        """
        return {
            "messages": self.messages,
            "parts": self.parts,
            "cost": float(self.cost),
            "encodings": {
                name: {"messages": totals.messages, "parts": totals.parts}
                for name, totals in (("GSM-7", self.gsm), ("UCS-2", self.ucs2))
            },
            "longest": {"characters": self.longest, "parts": self.longest_parts},
            "most_parts": {"parts": self.most_parts, "row": self.most_parts_row},
            "forcing": [
                each._replace(character=storable(each.character))._asdict() for each in self.forcing()[:MOST_SHOWN]
            ],
        }


def _name(code: int) -> str:
    """Return a character's name or, where it has none, its kind, as the Unicode Standard does (section 4.8)."""
    character = chr(code)
    return unicodedata.name(character, "") or _LABELS.get(unicodedata.category(character), "unassigned")
