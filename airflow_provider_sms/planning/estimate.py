"""The estimate of a table before its first message goes out: SMS parts, cost, and characters that cost more."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.messages.part_columns import count_part_columns
from airflow_provider_sms.service.redaction import storable

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from airflow_provider_sms.messages.part_columns import PartColumns
    from airflow_provider_sms.planning.prices import Prices

MOST_CHARACTERS = 1000
"""Different characters that have a count of their own; the rest share one, so that memory is bounded."""
MOST_SHOWN = 10
"""Characters that an XCom names."""

_ROWS_AT_ONCE = 2500  # the arrays made for more rows no longer fit the processor's caches
_CODES = 0x110000
_NOT_SEEN = -1
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
    alone: int
    """Messages that contain it and no other such character: without it, they would be sent in septets."""


class ForcingCharacters:
    """How many messages each character outside the GSM alphabet makes UCS-2, in bounded memory."""

    def __init__(self) -> None:
        self._codes: list[int] = []
        self._places = np.full(_CODES, _NOT_SEEN, np.int16)
        # The last place is that of all characters beyond the bound.
        self._messages = np.zeros(MOST_CHARACTERS + 1, np.int64)
        self._alone = np.zeros(MOST_CHARACTERS, np.int64)

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, texts: PartColumns) -> None:
        """Count the characters of some texts."""
        if not len(texts.foreign_codes):
            return
        places = self._places[texts.foreign_codes]
        if (places == _NOT_SEEN).any():
            self._assign_places(np.unique(texts.foreign_codes[places == _NOT_SEEN]))
            places = self._places[texts.foreign_codes]
        rows = np.cumsum(np.diff(texts.foreign_rows, prepend=texts.foreign_rows[0]) > 0)
        contained = np.zeros((rows[-1] + 1, places.max() + 1), np.bool_)
        contained[rows, places] = True
        self._messages[: contained.shape[1]] += contained.sum(axis=0)
        single = contained[contained.sum(axis=1) == 1, :MOST_CHARACTERS]
        self._alone[: single.shape[1]] += single.sum(axis=0)

    def most_frequent(self) -> list[ForcingCharacter]:
        """Return the characters that have a count of their own (the first 1000 that occurred), most frequent first."""
        counts = zip(self._codes, self._messages.tolist(), self._alone.tolist(), strict=False)
        ordered = sorted(counts, key=lambda counted: (-counted[1], counted[0]))
        return [ForcingCharacter(chr(code), f"U+{code:04X}", _name(code), *figures) for code, *figures in ordered]

    @property
    def beyond(self) -> int:
        """Messages with any character that has no count of its own."""
        return int(self._messages[MOST_CHARACTERS])

    @property
    def alone(self) -> int:
        """Messages with only one such character, which has a count of its own."""
        return int(self._alone.sum())

    def _assign_places(self, codes: npt.NDArray[np.uint32]) -> None:
        free = MOST_CHARACTERS - len(self)
        placed = codes[:free]
        self._places[placed] = np.arange(len(self), len(self) + len(placed))
        self._places[codes[free:]] = MOST_CHARACTERS
        self._codes.extend(placed.tolist())


@dataclass(slots=True)
class Estimate:
    """Figures about messages, added up in memory that does not grow with them; they hold no text and no phone number.

    :param prices: those of an SMS part.
    :param cost: credits, by these prices; the service may charge differently.
    :param longest: characters of the longest text.
    :param longest_parts: SMS parts of the longest text.
    :param most_parts: SMS parts of the message that takes the most.
    :param most_parts_row: index in the source of the first message with so many; None means that there is no message.
    :param characters: characters that make texts UCS-2.
    """

    prices: Prices
    cost: Decimal = Decimal(0)
    gsm: EncodingTotals = field(default_factory=EncodingTotals)
    ucs2: EncodingTotals = field(default_factory=EncodingTotals)
    longest: int = 0
    longest_parts: int = 0
    most_parts: int = 0
    most_parts_row: int | None = None
    characters: ForcingCharacters = field(default_factory=ForcingCharacters)

    @property
    def messages(self) -> int:
        """Messages in both encodings."""
        return self.gsm.messages + self.ucs2.messages

    @property
    def parts(self) -> int:
        """SMS parts of all messages."""
        return self.gsm.parts + self.ucs2.parts

    @own_decimals()
    def add(self, destinations: pa.Array, contents: pa.Array, rows: npt.NDArray[np.int64]) -> None:
        """Count some messages: three columns of one length, without nulls.

        :param destinations: digits with country code.
        :param contents: the texts.
        :param rows: indices in the source, ascending.
        :raises InputError: there is no price for a number, which the error shows masked.
        """
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            texts = count_part_columns(contents.slice(start, _ROWS_AT_ONCE))
            self.cost += self.prices.total(destinations.slice(start, _ROWS_AT_ONCE), texts.parts)
            self._add(texts, rows[start : start + _ROWS_AT_ONCE])

    def _add(self, texts: PartColumns, rows: npt.NDArray[np.int64]) -> None:
        for totals, own in ((self.gsm, ~texts.ucs2), (self.ucs2, texts.ucs2)):
            totals.messages += int(np.count_nonzero(own))
            totals.parts += int(texts.parts[own].sum())
        longest, most = int(texts.characters.argmax()), int(texts.parts.argmax())
        if self.most_parts_row is None or texts.characters[longest] > self.longest:
            self.longest, self.longest_parts = int(texts.characters[longest]), int(texts.parts[longest])
        if texts.parts[most] > self.most_parts:
            self.most_parts, self.most_parts_row = int(texts.parts[most]), int(rows[most])
        self.characters.add(texts)

    def as_json(self) -> dict[str, Any]:
        """Return the figures as an XCom holds them: of one size, however many messages there are, and without any text.

        :returns: ``messages``, ``parts`` and ``cost``; the first two by ``encodings``; the ``longest`` text; the
            ``most_parts`` of one message and its row, None where there is none; and, as ``forcing`` texts to be UCS-2,
            the ten most frequent ``characters``, how many ``more`` there are at least, and the messages in which one of
            them stands ``alone``. A NUL is shown as a question mark: PostgreSQL takes no XCom that has one.
        """
        characters = self.characters.most_frequent()
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
            "forcing": {
                "characters": [
                    character._replace(character=storable(character.character))._asdict()
                    for character in characters[:MOST_SHOWN]
                ],
                "more": max(len(characters) - MOST_SHOWN, 0) + bool(self.characters.beyond),
                "alone": self.characters.alone,
            },
        }


def _name(code: int) -> str:
    """Return a character's name or, where it has none, its kind, as the Unicode Standard does (section 4.8)."""
    character = chr(code)
    return unicodedata.name(character, "") or _LABELS.get(unicodedata.category(character), "unassigned")
