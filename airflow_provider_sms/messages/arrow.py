"""Arrow values by hand: pyarrow's own way from Python values imports pandas, which takes longer than 100,000 rows."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def strings(values: Sequence[str | None]) -> pa.Array:
    """Make a column of texts, with nulls."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int32, len(encoded) + 1)
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return string_array(offsets, b"".join(encoded), None if valid.all() else valid)


def string_array(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8] | bytes, valid: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """Make a column of texts of its parts.

    :param offsets: where each text begins in the data, and where the last ends.
    :param data: UTF-8.
    :param valid: which are not null; None: none is.
    """
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [bits, pa.py_buffer(offsets), pa.py_buffer(data)])


def mask(values: npt.NDArray[np.bool_]) -> pa.Array:
    """Make a condition for each row."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def valid_rows(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell which rows are not null."""
    flags = column.is_valid().cast(pa.uint8())
    return np.frombuffer(flags.buffers()[1], np.uint8)[flags.offset : flags.offset + len(flags)].astype(np.bool_)


def whole(column: pa.Array) -> pa.Array:
    """Return a column that begins where its buffers do: before version 18 Arrow writes other letters for a slice."""
    return pa.concat_arrays([column]) if column.offset else column


def replaced(column: pa.Array, rows: pa.Array, values: pa.Array) -> pa.Array:
    """Return a column with other values in some rows.

    In place of Arrow's ``replace_with_mask``, which minds slices, see :func:`whole`.

    :param rows: a condition for each row; null counts as not met.
    :param values: one for each row that meets it, of the column's type.
    """
    flags = pc.coalesce(rows, mask(np.zeros(1, np.bool_))[0]).cast(pa.uint8())
    chosen = np.frombuffer(flags.buffers()[1], np.uint8)[flags.offset : flags.offset + len(flags)].astype(np.bool_)
    places = np.arange(len(column), dtype=np.int64)
    places[chosen] = np.arange(len(column), len(column) + len(values))
    indices = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
    return pa.concat_arrays([column, values]).take(indices)


def utf8(texts: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Look at a column of texts as its parts.

    :returns: where each text begins, from 0, and where the last ends; and UTF-8, of no byte where all are empty.
    """
    _, offsets, data = texts.buffers()
    if offsets is None or data is None or not len(texts):
        return np.zeros(len(texts) + 1, np.int32), np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return ends - ends[0], np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def integers(column: pa.Array) -> npt.NDArray[Any]:
    """Look at a column of signed integers as an array; what stands in place of a null is not defined."""
    values = np.frombuffer(column.buffers()[1], f"i{column.type.bit_width // 8}")
    return values[column.offset : column.offset + len(column)]


def text(value: str) -> pa.Scalar:
    """Make a text for all rows."""
    return strings([value])[0]


@lru_cache(maxsize=None, typed=True)
def constant(value: str | float | bool | None) -> pa.Scalar:  # noqa: FBT001 - a value, and no switch
    """Make a value for all rows, once: a text, a 64-bit integer or float, a truth, or the null of a text."""
    if value is None:
        return pa.nulls(1, pa.string())[0]
    if isinstance(value, bool):
        return mask(np.array([value]))[0]
    if isinstance(value, str):
        return text(value)
    kind, values = (pa.int64(), np.int64(value)) if isinstance(value, int) else (pa.float64(), np.float64(value))
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(values.tobytes())])[0]
