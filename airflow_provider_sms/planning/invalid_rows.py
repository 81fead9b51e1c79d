"""Rows that cannot be used: how many for each reason, and the first of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_number
from airflow_provider_sms.recipients.columns import mask, valid_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

MAX_EXAMPLES = 10
"""Invalid rows that an error names."""


class InvalidRows:
    """The rows of a table that cannot be used, counted by reason, in memory that does not grow with them.

    :param fault: what is wrong with them, for people, such as ``cannot be texted``.
    """

    def __init__(self, fault: str) -> None:
        self.rows = 0
        """All rows that were looked at."""
        self.reasons: Counter[str] = Counter()
        """Why rows are invalid, and how many rows for each reason."""
        self.examples: list[str] = []
        """The first of them, in words; numbers are masked."""
        self._fault = fault

    @property
    def total(self) -> int:
        """How many rows are invalid."""
        return self.reasons.total()

    def add(self, columns: pa.Array, reasons: pa.Array, numbers: pa.Array) -> None:
        """Look at the next rows.

        :param columns: the column at fault in each row.
        :param reasons: why it cannot be used; null where it can.
        :param numbers: as they were written; null where there is none, and where another column is at fault.
        """
        is_invalid = valid_rows(reasons)
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
        """Return how many rows are invalid and why, and the first of them, one per line.

        :param advice: sentences to put before the rows, without the last full stop.
        """
        more = self.total - len(self.examples)
        lines = [*self.examples, *([f"and {more} more"] if more else [])]
        counts = f"{self.total} of {self.rows} {by_count(self.rows, 'row')} {self._fault}"
        first = f"{counts}: {reasons_in_words(self.reasons)}. {f'{advice}. ' if advice else ''}Rows count from 0:"
        return "\n  ".join([first, *lines])


def reasons_in_words(reasons: Mapping[str, int]) -> str:
    """Return reasons with the number of rows for each, most frequent first: ``7 times no number; 1 time no value``."""
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    return "; ".join(f"{count} {by_count(count, 'time')} {reason}" for reason, count in ordered)
