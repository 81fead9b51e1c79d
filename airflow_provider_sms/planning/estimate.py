"""The estimate of a table before its first message goes out: SMS parts, cost, and characters that cost more."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.messages.parts import BASIC, EXTENSION
from airflow_provider_sms.recipients.columns import chosen, integers, mask

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from airflow_provider_sms.planning.prices import Prices

MOST_SHOWN = 10
"""Characters that a plan names."""

_SEPTETS = f"[{re.escape(BASIC + EXTENSION)}]"


@dataclass(slots=True)
class Estimate:
    """Figures about messages; they hold no text and no phone number.

    :param cost: credits, by these prices; the service may charge differently.
    :param most_parts_row: index in the source of the first message with so many; None means that there is no message.
    :param characters: characters outside the GSM alphabet (GSM 03.38), each with the number of messages that have it.
        Such messages are in UCS-2.
    """

    prices: Prices
    cost: Decimal = Decimal(0)
    parts: int = 0
    ucs2_messages: int = 0
    ucs2_parts: int = 0
    most_parts: int = 0
    most_parts_row: int | None = None
    characters: Counter[str] = field(default_factory=Counter)

    @own_decimals()
    def add(self, rows: npt.NDArray[np.int64], messages: pa.RecordBatch) -> None:
        """Count some messages; ``rows`` are their indices in the source."""
        contents, parts = messages.column("content"), integers(messages.column("parts"))
        if not len(rows):
            return
        ucs2 = chosen(messages.column("is_ucs2"))
        self.cost += self.prices.total(messages.column("destination").to_pylist(), parts.tolist())
        self.parts += int(parts.sum())
        self.ucs2_messages += int(np.count_nonzero(ucs2))
        self.ucs2_parts += int(parts[ucs2].sum())
        most = int(parts.argmax())
        if parts[most] > self.most_parts:
            self.most_parts, self.most_parts_row = int(parts[most]), int(rows[most])
        foreign = pc.replace_substring_regex(contents.filter(mask(ucs2)), f"{_SEPTETS}+", "")
        for each in pc.value_counts(foreign).to_pylist():
            for character in set(each["values"]):
                self.characters[character] += each["counts"]

    def forcing(self) -> list[dict[str, Any]]:
        """Return the most frequent characters that make texts UCS-2, by name: databases do not store every one."""
        ordered = sorted(self.characters.items(), key=lambda counted: (-counted[1], counted[0]))[:MOST_SHOWN]
        return [
            {"code": f"U+{ord(each):04X}", "name": unicodedata.name(each, "no name"), "messages": count}
            for each, count in ordered
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the figures that a plan does not have itself as an XCom holds them, without any text."""
        return {
            "ucs2_messages": self.ucs2_messages,
            "ucs2_parts": self.ucs2_parts,
            "most_parts": self.most_parts,
            "most_parts_row": self.most_parts_row,
            "forcing": self.forcing(),
        }
