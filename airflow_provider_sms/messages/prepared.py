"""A batch of rows after preparation: messages as columns, and the rows that cannot be texted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.messages.keys import KEY_BYTES, message_keys
from airflow_provider_sms.recipients.columns import integers, mask, places, strings, valid_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

SCHEMA = pa.schema(
    [
        ("destination", pa.string()),
        ("content", pa.string()),
        ("key", pa.binary(KEY_BYTES)),
        ("parts", pa.int32()),
        ("column", pa.string()),
        ("reason", pa.string()),
    ]
)
"""The columns of checked rows. Those of a message have a key, and those without one have a reason and the column at
fault; their destination is as it was written where it is no number."""


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
    part_column: npt.NDArray[np.int32]
    """SMS parts of each."""
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
            part_column=self.part_column[which],
            keys=list(compress(self.keys, which.tolist())),
        )

    def as_record_batch(self) -> pa.RecordBatch:
        """Return all rows, in order, as :data:`SCHEMA` has them."""
        key_column = pa.Array.from_buffers(
            SCHEMA.field("key").type, len(self.keys), [None, pa.py_buffer(b"".join(self.keys))]
        )
        parts = pa.Array.from_buffers(
            pa.int32(), len(self.keys), [None, pa.py_buffer(self.part_column.astype(np.int32))]
        )
        nothing = pa.nulls(len(self.keys), pa.string())
        messages = pa.RecordBatch.from_arrays(
            [self.destination_column, self.content_column, key_column, parts, nothing, nothing], schema=SCHEMA
        )
        if not self.rejected:
            return messages
        rejected = pa.RecordBatch.from_arrays(
            [
                strings(self.rejected_numbers),
                *(pa.nulls(len(self.rejected), SCHEMA.field(name).type) for name in ("content", "key", "parts")),
                strings([each.column for each in self.rejected]),
                strings([each.reason for each in self.rejected]),
            ],
            schema=SCHEMA,
        )
        rows = np.concatenate([self.row_column, [each.row for each in self.rejected]])
        (ordered,) = (
            pa.Table.from_batches([messages, rejected]).combine_chunks().take(places(np.argsort(rows))).to_batches()
        )
        return ordered

    @classmethod
    def of_record_batch(cls, batch: pa.RecordBatch, first_row: int) -> Self:
        """Return the batch of which :meth:`as_record_batch` is; numbers of rejected rows are not among their values."""
        is_message = valid_rows(batch.column("key"))
        rows, other = np.arange(first_row, first_row + len(batch)), batch.filter(pc.is_null(batch.column("key")))
        messages = batch if is_message.all() else batch.filter(mask(is_message))
        return cls(
            num_rows=len(batch),
            row_column=rows[is_message],
            destination_column=messages.column("destination"),
            content_column=messages.column("content"),
            part_column=integers(messages.column("parts")),
            keys=messages.column("key").to_pylist(),
            rejected=[
                RejectedRow(row, column, reason, "")
                for row, column, reason in zip(
                    rows[~is_message].tolist(),
                    other.column("column").to_pylist(),
                    other.column("reason").to_pylist(),
                    strict=True,
                )
            ],
            rejected_numbers=other.column("destination").to_pylist(),
        )

    def keys_with_texts(self) -> list[bytes]:
        """Return a digest of each message's key, number and text: with key columns, a key does not tell the text."""
        texts = message_keys(self.destination_column, self.content_column)
        return [
            blake2b(key + text_key, digest_size=KEY_BYTES).digest()
            for key, text_key in zip(self.keys, texts, strict=True)
        ]

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
