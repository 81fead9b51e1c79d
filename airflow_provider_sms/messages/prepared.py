"""A batch of rows after preparation: messages as columns, and the rows that cannot be texted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.recipients.columns import mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be texted."""

    row: int
    """Index in the source, from 0."""
    column: str
    """The column at fault."""
    reason: str
    """The fault, without the value."""
    value: str
    """The number, masked; empty where there is none, and where the text is at fault."""


def count_reasons(reasons: Mapping[str, int]) -> str:
    """Return reasons with the number of rows for each, most frequent first: ``7 times no number; 1 time no value``."""
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    return "; ".join(f"{count} {by_count(count, 'time')} {reason}" for reason, count in ordered)


def list_rejected(rows: Sequence[RejectedRow], total: int) -> str:
    """Return rejected rows for an error or a log, one per line, and how many more there are.

    :param rows: the first of them.
    :param total: how many there are in all.
    """
    lines = [
        f"  row {each.row}, column {each.column}: {each.reason}{f' ({each.value})' if each.value else ''}"
        for each in rows
    ]
    if total > len(rows):
        lines.append(f"  and {total - len(rows)} more")
    return "\n".join(["Rows count from 0:", *lines])


@dataclass(frozen=True, slots=True, repr=False)
class PreparedBatch:
    """The messages of a batch as columns of one length, and the rows without a message."""

    num_rows: int
    """Rows of the batch."""
    row_column: npt.NDArray[np.int64]
    """Index in the source, from 0, of each message's row."""
    destination_column: pa.Array
    """Digits with country code."""
    content_column: pa.Array
    """The texts."""
    keys: list[bytes]
    """The key of each message, 16 bytes."""
    rejected: list[RejectedRow]
    """Rows without a message, in order."""
    rejected_numbers: list[str | None]
    """The number of each rejected row: cleaned where it is valid, else as written; None where there is none."""

    def __repr__(self) -> str:
        messages, rows = len(self.keys), self.num_rows
        return f"PreparedBatch({messages} {by_count(messages, 'message')} of {rows} {by_count(rows, 'row')})"

    def keeping(self, which: npt.NDArray[np.bool_]) -> PreparedBatch:
        """Return some of the messages; the rejected rows stay.

        :param which: whether each message stays.
        """
        if which.all():
            return self
        condition = mask(which)
        return replace(
            self,
            row_column=self.row_column[which],
            destination_column=self.destination_column.filter(condition),
            content_column=self.content_column.filter(condition),
            keys=list(compress(self.keys, which.tolist())),
        )

    @property
    def rows(self) -> list[int]:
        """Index in the source, from 0, of each message's row."""
        rows: list[int] = self.row_column.tolist()
        return rows

    @property
    def destinations(self) -> list[str]:
        """Digits with country code."""
        destinations: list[str] = self.destination_column.to_pylist()
        return destinations

    @property
    def contents(self) -> list[str]:
        """The texts."""
        contents: list[str] = self.content_column.to_pylist()
        return contents
