"""Recipients that are in memory already: a DataFrame, an Arrow table, a list of dicts."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.messages.columns import check_text, field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd


class TableSource:
    """A table in memory.

    :param table: all rows.
    :param description: what to call it in a log; holds no value of a row.
    :raises SourceError: two columns have one name.
    """

    def __init__(self, table: pa.Table, description: str) -> None:
        check_names(table.schema.names, description)
        self.schema: pa.Schema = table.schema
        self.num_rows: int | None = table.num_rows
        self._table = table
        self._description = description

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Go through the rows in order; each call starts anew.

        :param columns: the columns that are needed; None: all.
        :param batch_size: rows in a batch, at most. There are no empty batches.
        """
        if not self.num_rows:
            return
        names = self.schema.names if columns is None else list(dict.fromkeys(columns))
        for name in names:
            field_of(self.schema, name, "columns")
        for batch in self._table.select(names).to_batches(max_chunksize=batch_size):
            if batch.num_rows:
                check_text(batch, self._description)
                yield batch

    def describe(self) -> str:
        """Say what the source is, without any of its values."""
        return self._description


def from_table(table: pa.Table) -> TableSource:
    """Read an Arrow table.

    :raises SourceError: two columns have one name.
    """
    return TableSource(table, _sized("Table", table.num_rows, table.num_columns))


def from_dataframe(frame: pd.DataFrame) -> TableSource:
    """Read a DataFrame; its index is left out.

    :raises SourceError: two columns have one name, or one has values of which no column can be made.
    """
    description = _sized("DataFrame", len(frame), len(frame.columns))
    names = [str(name) for name in frame.columns]
    check_names(names, description)
    columns = {}
    for position, name in enumerate(names):
        series = frame.iloc[:, position]
        column = _converted(series)
        columns[name] = _column(series.astype(object).tolist(), name, description) if column is None else column
    return _source(columns, len(frame), description)


def from_rows(rows: Sequence[Mapping[str, Any]]) -> TableSource:
    """Read a list of dicts; a key that a dict lacks is null there.

    :raises SourceError: a key is no text, or has values of which no column can be made.
    """
    description = f"list of {len(rows)} rows"
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not all(isinstance(name, str) for name in names):
        raise SourceError(f"{description}: the keys of the dicts are column names, so each must be text")
    columns = {name: _column([row.get(name) for row in rows], name, description) for name in names}
    return _source(columns, len(rows), description)


def check_names(names: Iterable[str], description: str) -> None:
    """Refuse columns that cannot be told apart.

    :raises SourceError: names the first that comes twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SourceError(f"{description}: more than one column is named {name!r}; rename or drop the others")
        seen.add(name)


def _sized(kind: str, rows: int, columns: int) -> str:
    return f"{kind} of {rows} rows × {columns} columns"  # noqa: RUF001 - a multiplication sign is meant


def _source(columns: dict[str, pa.Array], rows: int, description: str) -> TableSource:
    if rows and not columns:
        raise SourceError(f"{description}: there are rows, but no columns")
    return TableSource(pa.table(columns), description)


def _column(values: list[Any], name: str, description: str) -> pa.Array:
    """Make a column of Python values; of text mixed with numbers, a column of text."""
    column = _converted(values)
    if column is not None:
        return column
    try:
        return pa.array([_as_text(value) for value in values], pa.string())
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
    raise SourceError(
        f"{description}: no column can be made of the values of {name!r}, which are of type {kinds}; "
        "convert them, or leave the column out"
    )


def _converted(values: Any) -> pa.Array | None:
    """Make a column as Arrow would; None where it cannot, since its errors quote values and are not passed on."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _as_text(value: Any) -> str | None:
    """Write a value of a column that mixes text and numbers: 821234567 as its digits, nothing as null."""
    if isinstance(value, str):
        return str(value)
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, float):
        return None if value != value else repr(float(value))  # noqa: PLR0124 - NaN is the one that differs from itself
    if isinstance(value, Decimal):
        return None if value.is_nan() else str(value)
    if isinstance(value, (bool, Integral)):
        return str(value)
    raise TypeError
