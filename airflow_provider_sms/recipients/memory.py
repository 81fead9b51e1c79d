"""Recipients that are in memory, or arrive there piece by piece: DataFrames, Arrow's tables and streams, and dicts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.batches import BATCH_ROWS, Source, batch_without_rows, check_names
from airflow_provider_sms.recipients.columns import strings
from airflow_provider_sms.recipients.values import NULLS, value_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    import pandas as pd

_KINDS = (str, bool, int, float, Decimal, dt.datetime, dt.date, dt.time)
"""The kinds of values; a kind comes before the one that it is a subclass of: True is an int to Python, and a datetime a
date."""
_AS_TEXT = {UUID, np.float16, np.float32}
"""Kinds whose values Arrow would write otherwise than they are written, in some of its versions."""


def from_dataframe(frame: pd.DataFrame) -> Source:
    """Return the source of a DataFrame; the index is left out."""
    description = f"DataFrame of {len(frame)} {by_count(len(frame), 'row')}"
    names = [str(name) for name in frame.columns]
    check_names(names, description)
    if len(frame) and not names:
        raise SourceError(f"{description}: there are rows, but no columns")

    def read(_: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        for start in range(0, max(len(frame), 1), BATCH_ROWS):
            piece = frame.iloc[start : start + BATCH_ROWS]
            yield _batch({name: piece.iloc[:, place] for place, name in enumerate(names)}, description)

    return Source(description, read)


def from_stream(stream: Any) -> Source:
    """Return the source of an object with Arrow's C stream interface."""
    description = type(stream).__name__

    def read(_: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        try:
            with pa.RecordBatchReader.from_stream(stream) as reader:
                yield batch_without_rows(reader.schema)
                yield from reader
        except (pa.ArrowException, NotImplementedError, OSError, TypeError, ValueError) as error:
            # The producer's words may quote values.
            raise SourceError(
                f"{description}: its Arrow stream cannot be read as a table by pyarrow {pa.__version__}: "
                f"{type(error).__name__}"
            ) from None

    return Source(description, read)


def from_dicts(rows: Iterable[Any], description: str) -> Source:
    """Return the source of dicts, one for each row; each batch has the columns of the ones before it."""

    def read(_: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        names: dict[str, None] = {}
        count, remaining = 0, iter(rows)
        while piece := list(islice(remaining, BATCH_ROWS)):
            for row, each in enumerate(piece, count):
                if not isinstance(each, Mapping):
                    raise SourceError(
                        f"{description}: an iterator of recipients yields dicts, one for each row, not "
                        f"{type(each).__name__} (row {row})"
                    )
            count += len(piece)
            names |= dict.fromkeys(name for each in piece for name in each)
            if not all(isinstance(name, str) for name in names):
                raise SourceError(f"{description}: the keys of the dicts are column names, so each must be text")
            if not names:
                raise SourceError(f"{description}: there are rows, but no columns")
            yield _batch({name: [each.get(name) for each in piece] for name in names}, description)

    return Source(description, read)


def batch_of_values(names: Sequence[str], rows: Sequence[Sequence[Any]], description: str) -> pa.RecordBatch:
    """Return some rows of values, in the order of the names, as a batch."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return _batch(dict(zip(names, map(list, columns), strict=True)), description)


def _batch(columns: Mapping[str, Any], description: str) -> pa.RecordBatch:
    """Return columns, each a Series or a list of values, as a batch."""
    arrays = [_column(values, name, description) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _column(values: Any, name: str, description: str) -> pa.Array:
    """Return a column of the type of a Series or, without one, of the kind of its values.

    Several kinds become text, but for whole numbers among floats: Arrow would turn a time beside a date into a date,
    and True beside 0.5 into 1.
    """
    if not isinstance(values, list):
        stored = getattr(values.dtype, "categories", values).dtype
        if str(stored) != "object" and (column := _converted(values)) is not None:
            return column
        values = values.astype(object).tolist()
    kinds = _kinds(values)
    if len(kinds) > 1:  # often NaN beside text, which pandas writes for a missing text
        nans = (float, np.floating, Decimal)
        values = [None if isinstance(each, nans) and each != each else each for each in values]  # noqa: PLR0124
        kinds = _kinds(values)
    is_one = len(kinds) <= 1 and not kinds & _AS_TEXT
    if kinds == {dt.datetime}:
        is_one = len({str(value.tzinfo) for value in values if type(value).__name__ not in NULLS}) == 1
    # Arrow refuses an integer that would lose digits.
    numbers = pa.float64() if kinds == {int, float} else None
    column = _converted(values, numbers) if is_one or numbers else None
    try:
        return strings([value_text(value) for value in values]) if column is None else column
    except (TypeError, ValueError):
        found = ", ".join(sorted({type(value).__name__ for value in values}))
    raise SourceError(
        f"{description}: no column can be made of the values of {mask_numbers_in(name)!r}, which are of type {found}; "
        "convert them, or leave the column out"
    )


def _kinds(values: Iterable[Any]) -> set[type]:
    """Return the kinds of the values, without those that are null in pandas."""
    return {
        next((known for known in _KINDS if issubclass(kind, known)), kind)
        for kind in set(map(type, values))
        if kind.__name__ not in NULLS
    }


def _converted(values: Any, kind: pa.DataType | None = None) -> pa.Array | None:
    """Return the column that Arrow makes; None where it cannot, since its errors quote values and are not passed on."""
    try:
        column = pa.array(values, kind, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
