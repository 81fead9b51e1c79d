"""Batches of any size → batches of one size: all that comes after works on a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def rebatched(batches: Iterable[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Give the same rows in the same order.

    :param batches: of one schema.
    :param batch_size: rows in each batch but the last, which has fewer.
    """
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, batch_size - rows)
            held.append(piece)
            start += piece.num_rows
            rows += piece.num_rows
            if rows == batch_size:
                yield _combined(held)
                held, rows = [], 0
    if held:
        yield _combined(held)


def _combined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch
