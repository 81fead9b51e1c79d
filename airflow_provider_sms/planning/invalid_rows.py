"""Rows that cannot be used: how many for each reason, and the first of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_number
from airflow_provider_sms.recipients.columns import chosen, mask

if TYPE_CHECKING:
    import pyarrow as pa

MAX_EXAMPLES = 10
"""Invalid rows that an error names."""


class InvalidRows:
    """The rows of a table that cannot be used, counted by reason, in memory that does not grow with them."""

    def __init__(self, fault: str) -> None:
        self.rows = 0
        """All rows that were looked at."""
        self.reasons: Counter[str] = Counter()
        """Invalid rows, by reason."""
        self.examples: list[str] = []
        """The first of them, in words; numbers are masked."""
        self._fault = fault

    @property
    def total(self) -> int:
        """How many rows are invalid."""
        return self.reasons.total()

    def add(self, columns: pa.Array, reasons: pa.Array, numbers: pa.Array) -> None:
        """Look at the next rows, each with the column at fault, the reason and the number, null where there is none."""
        is_invalid = chosen(reasons.is_valid())
        places = (np.flatnonzero(is_invalid) + self.rows).tolist()
        self.rows += len(reasons)
        if not places:
            return
        invalid = (each.filter(mask(is_invalid)).to_pylist() for each in (columns, reasons, numbers))
        for row, column, reason, number in zip(places, *invalid, strict=True):
            self.reasons[reason] += 1
            if len(self.examples) < MAX_EXAMPLES:
                shown = "" if number is None else f" ({mask_number(str(number))})"
                self.examples.append(f"row {row}, column {column}: {reason}{shown}")

    def in_words(self, advice: str = "") -> str:
        """Return how many rows are invalid and why, advice without its full stop, and the first rows, one a line."""
        more = self.total - len(self.examples)
        lines = [*self.examples, *([f"and {more} more"] if more else [])]
        counts = f"{self.total} of {self.rows} {by_count(self.rows, 'row')} {self._fault}"
        first = f"{counts}: {reasons_in_words(self.reasons)}. {f'{advice}. ' if advice else ''}Rows count from 0:"
        return "\n  ".join([first, *lines])


def reasons_in_words(reasons: Counter[str]) -> str:
    """Return reasons with the number of rows for each, most frequent first: ``7 times no number; 1 time no value``."""
    return "; ".join(f"{count} {by_count(count, 'time')} {reason}" for reason, count in reasons.most_common())
