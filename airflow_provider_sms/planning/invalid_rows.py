"""Rows that cannot be used: how many for each reason, and the first of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_number

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_EXAMPLES = 10
"""Invalid rows that an error names."""


class InvalidRows:
    """Invalid rows, counted by reason, in memory that does not grow with them."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        """Why rows are invalid, and how many rows for each reason."""
        self.examples: list[str] = []
        """The first of them, in words; numbers are masked."""

    @property
    def total(self) -> int:
        """How many rows are invalid."""
        return self.reasons.total()

    def add(self, row: int, column: str, reason: str, number: object) -> None:
        """Add a row.

        :param row: its index in the source.
        :param column: the column at fault.
        :param number: as it was written; None where there is none, and where another column is at fault.
        """
        self.reasons[reason] += 1
        if len(self.examples) < MAX_EXAMPLES:
            shown = "" if number is None else f" ({mask_number(str(number))})"
            self.examples.append(f"row {row}, column {column}: {reason}{shown}")

    def in_words(self, beginning: str, advice: str) -> str:
        """Return the reasons, and the first of the rows, one per line.

        :param beginning: how many rows there are.
        :param advice: sentences to put before the rows, without the last full stop; empty for none.
        """
        more = self.total - len(self.examples)
        lines = [*self.examples, *([f"and {more} more"] if more else [])]
        first = f"{beginning}: {reasons_in_words(self.reasons)}. {f'{advice}. ' if advice else ''}Rows count from 0:"
        return "\n  ".join([first, *lines])


def reasons_in_words(reasons: Mapping[str, int]) -> str:
    """Return reasons with the number of rows for each, most frequent first: ``7 times no number; 1 time no value``."""
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    return "; ".join(f"{count} {by_count(count, 'time')} {reason}" for reason, count in ordered)
