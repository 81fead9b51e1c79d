"""Recipients that are in memory already: a DataFrame, an Arrow table, a list of dicts or a dict of columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.columns import DECIMALS, check_text, fields_of, is_text
from airflow_provider_sms.recipients.values import LOST_FROM, NULLS, mixed_value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd

_KINDS = {str: 0, bool: 0, int: 0, float: 0, Decimal: 0, dt.datetime: 0, dt.date: 0, dt.time: 0}.keys()
"""The kinds of values; a kind comes before the one that it is a subclass of: True is an int to Python, and a datetime a
date."""
_MOST_LENGTHS = 5
"""Columns whose lengths an error lists, at most."""
_NUMBERS = {int, float, np.float32, np.float16}


class TableSource:
    """A table in memory.

    :param table: all rows.
    :param description: the name of the source in a log, without values of rows.
    :raises SourceError: two columns have the same name.
    """

    def __init__(self, table: pa.Table, description: str) -> None:
        check_names(table.schema.names, description)
        self.schema: pa.Schema = table.schema
        self._table = table
        self._description = description

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; each call starts anew.

        :param columns: the columns to read; None means all.
        :param batch_size: rows in a batch, at most. There are no empty batches.
        """
        if not self._table.num_rows:
            return
        for batch in self._table.select(fields_of(self.schema, columns).names).to_batches(max_chunksize=batch_size):
            if batch.num_rows:
                check_text(batch, self._description)
                yield batch

    def describe(self) -> str:
        """Return a description of the source, without any of its values."""
        return self._description

    def close(self) -> None:
        """Do nothing: the rows are the caller's."""


def from_table(table: pa.Table) -> TableSource:
    """Return the source of an Arrow table.

    :raises SourceError: two columns have the same name.
    """
    return TableSource(table, _describe("Table", table.num_rows, table.num_columns))


def from_dataframe(frame: pd.DataFrame) -> TableSource:
    """Return the source of a DataFrame; the index is left out.

    :raises SourceError: two columns have the same name, or a column has values from which no column can be made.
    """
    description = _describe("DataFrame", len(frame), len(frame.columns))
    names = [str(name) for name in frame.columns]
    check_names(names, description)
    columns = [_column_of_series(frame.iloc[:, n], name, description) for n, name in enumerate(names)]
    return TableSource(_table(names, columns, len(frame), description), description)


def from_rows(rows: Sequence[Mapping[str, Any]]) -> TableSource:
    """Return the source of a list of dicts; a key that a dict lacks is null there.

    :raises SourceError: a key is not text, or has values from which no column can be made.
    """
    description = f"list of {len(rows)} {by_count(len(rows), 'row')}"
    return TableSource(_table_of_rows(rows, description), description)


def from_columns(columns: Mapping[str, Any]) -> TableSource:
    """Return the source of a dict of columns, each a list, a Series, or an array of Arrow or NumPy.

    :raises SourceError: a key is not text, a value is not a column, the columns differ in length, two Series differ in
        their index, or a column has values from which no column can be made.
    """
    description = f"dict of {len(columns)} {by_count(len(columns), 'column')}"
    _check_keys(columns, description, "dict")
    for name, values in columns.items():
        if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not (
            hasattr(values, "__len__") and hasattr(values, "__iter__")
        ):
            raise SourceError(
                f"{description}: the value of {mask_numbers_in(name)!r} is of type {type(values).__name__}, but a dict "
                "as source holds columns: the name of each, and a list of its values. A single recipient is a list of "
                "one dict"
            )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        some = list(lengths.items())[:_MOST_LENGTHS]
        told = ", ".join(f"{mask_numbers_in(name)!r} has {length}" for name, length in some)
        raise SourceError(f"{description}: all columns need the same number of values, but {told}")
    _check_indexes(columns, description)
    made = [_column_of_values(values, name, description) for name, values in columns.items()]
    table = _table(list(columns), made, max(lengths.values(), default=0), description)
    return TableSource(table, _describe("dict", table.num_rows, table.num_columns))


def _check_indexes(columns: Mapping[str, Any], description: str) -> None:
    """Refuse Series whose rows may belong together by their index and not by their place, as in a DataFrame."""
    series = [(name, values) for name, values in columns.items() if hasattr(values, "iloc")]
    for name, values in series[1:]:
        first, others = series[0]
        if not values.index.equals(others.index):
            raise SourceError(
                f"{description}: the Series of {mask_numbers_in(first)!r} and {mask_numbers_in(name)!r} have different "
                "indexes, so values of different people could come together. Pass a DataFrame, which matches them by "
                "index, or lists, which are matched by place"
            )


def batch_of_rows(rows: Sequence[Mapping[str, Any]], description: str, known: Sequence[str] = ()) -> pa.RecordBatch:
    """Return some dicts as a batch; a key that a dict lacks is null there.

    :param rows: few enough that each column is one array.
    :param known: names of columns that come first, also where no dict has such a key.
    :raises SourceError: a key is not text, or has values from which no column can be made.
    """
    return _batch(_table_of_rows(rows, description, known))


def batch_of_values(names: Sequence[str], rows: Sequence[Sequence[Any]], description: str) -> pa.RecordBatch:
    """Return some rows of values as a batch.

    :param names: those of the columns, in the order of each row's values.
    :param rows: few enough that each column is one array.
    :raises SourceError: a column has values from which no column can be made.
    """
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    columns = [_column(list(values), name, description) for name, values in zip(names, by_column, strict=True)]
    return _batch(_table(names, columns, len(rows), description))


def _table_of_rows(rows: Sequence[Mapping[str, Any]], description: str, known: Sequence[str] = ()) -> pa.Table:
    names = list(dict.fromkeys((*known, *(name for row in rows for name in row))))
    _check_keys(names, description, "dicts")
    columns = [_column([row.get(name) for row in rows], name, description) for name in names]
    return _table(names, columns, len(rows), description)


def _check_keys(names: Iterable[Any], description: str, of: str) -> None:
    if not all(isinstance(name, str) for name in names):
        raise SourceError(f"{description}: the keys of the {of} are column names, so each must be text")


def check_names(names: Iterable[str], description: str) -> None:
    """Refuse columns that cannot be told apart.

    :raises SourceError: names the first column name that occurs twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            shown = mask_numbers_in(name)
            raise SourceError(f"{description}: more than one column is named {shown!r}; rename or drop the others")
        seen.add(name)


def _describe(kind: str, rows: int, columns: int) -> str:
    # A multiplication sign is meant.
    return f"{kind} of {rows} {by_count(rows, 'row')} × {columns} {by_count(columns, 'column')}"  # noqa: RUF001


def _batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def _table(names: Sequence[str], columns: Sequence[_Column], rows: int, description: str) -> pa.Table:
    if rows and not columns:
        raise SourceError(f"{description}: there are rows, but no columns")
    fields = [
        pa.field(name, column.array.type, metadata=DECIMALS if column.holds_decimals else None)
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.table([column.array for column in columns], pa.schema(fields))


class _Column(NamedTuple):
    array: pa.Array | pa.ChunkedArray
    holds_decimals: bool = False
    """Whether any value is one of Python's decimals."""


def _column_of_series(series: pd.Series[Any], name: str, description: str) -> _Column:
    """Return a column of the type of a Series or, where that is ``object``, of the types of its values."""
    categories = getattr(series.dtype, "categories", None)
    of_objects = series.dtype == object or (
        categories is not None and categories.dtype == object and _kinds(categories) != {str}
    )
    column = None if of_objects else _converted(series)
    return _column(series.astype(object).tolist(), name, description) if column is None else _Column(column)


def _column_of_values(values: Any, name: str, description: str) -> _Column:
    """Return a column of a dict: one that has a type keeps it."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _Column(values)
    if hasattr(values, "dtype") and hasattr(values, "iloc"):
        return _column_of_series(values, name, description)
    return _column(list(values), name, description)


def _column(values: list[Any], name: str, description: str) -> _Column:
    """Return a column of Python values, each of them unchanged: where no type holds them all, a column of text.

    Arrow would turn one value into the type of another: a time beside a date into a date, and True beside 0.5 into 1.
    """
    kinds = _kinds(values)
    column = None
    if kinds <= {str, float}:
        column = _converted(values)
        if column is not None and (str not in kinds or is_text(column.type)):
            return _Column(column)
    if len(kinds) > 1:
        values = [None if _is_nan(value) else value for value in values]
        kinds = _kinds(values)
    decimals = Decimal in kinds
    if kinds <= _NUMBERS and kinds not in (set(), {int}, {float}):
        column = _floats(values)
    elif UUID in kinds:
        column = None  # as text: some versions of Arrow have a type for it, which nothing else knows
    elif dt.datetime in kinds:
        column = _moments(values) if kinds <= {dt.date, dt.datetime} else None
    elif len(kinds) <= 1 or kinds == {int, Decimal}:
        column = _converted(values)
    if column is not None:
        return _Column(column, decimals)
    try:
        return _Column(pa.array([mixed_value_text(value) for value in values], pa.string()), decimals)
    except (TypeError, ValueError):
        found = ", ".join(sorted({type(value).__name__ for value in values}))
    raise SourceError(
        f"{description}: no column can be made of the values of {mask_numbers_in(name)!r}, which are of type {found}; "
        "convert them, or leave the column out"
    )


def _kinds(values: Iterable[Any]) -> set[type]:
    """Return the kinds of the values, without those that are null in pandas."""
    return {_kind(kind) for kind in set(map(type, values)) if kind.__name__ not in NULLS}


def _kind(kind: type) -> type:
    if issubclass(kind, np.bool_):
        return bool
    if issubclass(kind, np.integer):
        return int
    return next((known for known in _KINDS if issubclass(kind, known)), kind)


def _is_nan(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _floats(values: Sequence[Any]) -> pa.Array | None:
    """Return a column of numbers of several types; None where a float cannot hold one of them."""
    if any(isinstance(value, (int, np.integer)) and abs(int(value)) >= LOST_FROM[64] for value in values):
        return None
    numbers = [None if type(value).__name__ in NULLS else _float(value) for value in values]
    return pa.array(numbers, pa.float64(), from_pandas=True)


def _float(value: Any) -> float:
    """Return a number as a float of 64 bits; a float of fewer bits as the number that it was written as."""
    bits = 8 * value.dtype.itemsize if isinstance(value, np.floating) else 64
    if bits >= 64:  # noqa: PLR2004 - as many as a float has
        return float(value)
    return float(str(value)) if abs(value) < LOST_FROM[bits] else float("inf")


def _moments(values: Sequence[Any]) -> pa.Array | None:
    """Return a column of times, and of dates as their midnights; None where the times have several zones."""
    moments = [
        dt.datetime.combine(value, dt.time())
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        else value
        for value in values
    ]
    zones = {_zone(moment) for moment in moments if moment is not None and type(moment).__name__ not in NULLS}
    return _converted(moments) if len(zones) <= 1 else None


def _zone(moment: dt.datetime) -> str | None:
    # Within one zone of pytz, the objects differ from time to time.
    return None if moment.tzinfo is None else str(getattr(moment.tzinfo, "zone", None) or moment.tzinfo)


def _converted(values: Any) -> pa.Array | None:
    """Return the column that Arrow makes; None where it cannot, since its errors quote values and are not passed on."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
