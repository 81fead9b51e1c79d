"""Rows that cannot be used: how many for each reason, and the first of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.formatting import by_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_EXAMPLES = 10
"""Invalid rows that an error names: a table without one valid row takes no more memory."""


class InvalidRow(NamedTuple):
    """A row that cannot be used.

    :param row: index in the source, from 0.
    :param column: the column at fault.
    :param reason: the fault, without the value.
    :param value: the number, masked; empty where there is none, and where another column is at fault.
    """

    row: int
    column: str
    reason: str
    value: str


class InvalidRows:
    """Invalid rows, counted by reason, in memory that does not grow with them."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        """Why rows are invalid, and how many rows for each reason."""
        self.examples: list[InvalidRow] = []
        """The first of them."""

    @property
    def total(self) -> int:
        """How many rows are invalid."""
        return self.reasons.total()

    def add(self, rows: Iterable[InvalidRow]) -> None:
        """Add rows, in order."""
        for row in rows:
            self.reasons[row.reason] += 1
            if len(self.examples) < MAX_EXAMPLES:
                self.examples.append(row)

    def in_words(self, beginning: str, advice: str) -> str:
        """Return the reasons, and the first of the rows, one per line.

        :param beginning: how many rows there are.
        :param advice: sentences to put before the rows, without the last full stop; empty for none.
        """
        lines = [
            f"  row {each.row}, column {each.column}: {each.reason}{f' ({each.value})' if each.value else ''}"
            for each in self.examples
        ]
        if self.total > len(self.examples):
            lines.append(f"  and {self.total - len(self.examples)} more")
        first = f"{beginning}: {reasons_in_words(self.reasons)}. {f'{advice}. ' if advice else ''}Rows count from 0:"
        return "\n".join([first, *lines])


def reasons_in_words(reasons: Mapping[str, int]) -> str:
    """Return reasons with the number of rows for each, most frequent first: ``7 times no number; 1 time no value``."""
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    return "; ".join(f"{count} {by_count(count, 'time')} {reason}" for reason, count in ordered)
