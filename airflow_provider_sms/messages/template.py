"""``"Hi {first_name}, you owe {amount:.2f}"`` and a batch of rows → texts, a column at a time."""

from __future__ import annotations

import re
from string import Formatter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError, TemplateError
from airflow_provider_sms.messages.arrow import constant, strings, text
from airflow_provider_sms.messages.columns import column_of, field_of, is_float, is_text, value_type
from airflow_provider_sms.messages.formats import never_fails, write_numbers

USED_BY = "message"

# What one column of texts can hold, and what a number in one of the formats that never fail can take of it.
_MOST_BYTES = 2**31 - 1
_LONGEST_NUMBER = 400


class _Field(NamedTuple):
    """A place in the text for a value of a column."""

    column: str
    spec: str


class Template:
    """A text with places for the values of columns, in the syntax of :meth:`str.format`.

    A field is the exact name of a column, ``{a.b}`` that of the column ``a.b``, and may have a format, as in
    ``{amount:.2f}``. Without one, a whole number reads as such, in a float column too: ``120``. Braces of the text
    itself are doubled. The text is in no repr and in no error.

    :param text: the template; without fields everyone gets the same text.
    :raises TemplateError: the syntax is wrong, a field names no column, or it has a conversion such as ``!r``.
    """

    __slots__ = ("_fields", "_literal_bytes", "_never_blank", "_pieces", "columns", "constant")

    columns: tuple[str, ...]
    """The columns that the text needs, in order, each once."""
    constant: str | None
    """The text of every row; None: it has fields."""

    def __init__(self, text: str) -> None:
        self._pieces = _parse(text)
        self._fields = [piece for piece in self._pieces if isinstance(piece, _Field)]
        self.columns = tuple(dict.fromkeys(field.column for field in self._fields))
        literals = "".join(piece for piece in self._pieces if isinstance(piece, str))
        self.constant = None if self._fields else literals
        self._literal_bytes = 4 * len(literals)
        self._never_blank = any(character.isalnum() for character in literals)

    def check(self, schema: pa.Schema) -> None:
        """Check that the columns are there and that their values can be written as text.

        :raises ColumnError: one is not, or cannot.
        :raises TemplateError: a column of text has a format for numbers or dates.
        """
        for name in self.columns:
            kind = field_of(schema, name, USED_BY).type
            if not _has_text(kind):
                raise ColumnError(f"{USED_BY}: column {name!r} is of type {kind}, which has no form as text")
        for piece in self._pieces:
            if isinstance(piece, _Field) and is_text(value_type(schema.field(piece.column).type)):
                _check_format_of_text(piece)

    def render(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Render the text of each row.

        :param batch: rows with all columns of the template.
        :param first_row: index in the source of the batch's first row, for errors.
        :returns: strings; null where a value that the text needs is null or NaN.
        :raises ColumnError: a column is missing.
        :raises TemplateError: a format does not fit the values of its column.
        """
        if self.constant is not None:
            return pa.repeat(text(self.constant), len(batch))
        pieces = [
            _texts(column_of(batch, piece.column, USED_BY), piece, first_row)
            if isinstance(piece, _Field)
            else text(piece)
            for piece in self._pieces
        ]
        return pc.binary_join_element_wise(*pieces, constant(""))

    def try_out(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array | None:
        """Render the text of each row, unless it is known without that none will be null or blank, and nothing fails.

        :returns: as :meth:`render`; None: every row has a text.
        :raises ColumnError: a column is missing.
        :raises TemplateError: a format does not fit the values of its column.
        """
        columns = [(column_of(batch, field.column, USED_BY), field.spec) for field in self._fields]
        longest = len(batch) * (self._literal_bytes + _LONGEST_NUMBER * len(columns)) + batch.nbytes * len(columns)
        if (
            self._never_blank
            and longest <= _MOST_BYTES
            and all(never_fails(column.type, spec) and _is_full(column) for column, spec in columns)
        ):
            return None
        return self.render(batch, first_row)


class TextColumn:
    """A column that holds the finished texts; to be used like a template.

    :param column: its name.
    """

    __slots__ = ("columns",)

    columns: tuple[str, ...]
    """The column, alone."""
    constant = None

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def check(self, schema: pa.Schema) -> None:
        """Check that the column is there and holds text.

        :raises ColumnError: it is not, or does not.
        """
        kind = field_of(schema, self.columns[0], "content_column").type
        if not is_text(value_type(kind)) and not pa.types.is_null(kind):
            raise ColumnError(f"content_column: column {self.columns[0]!r} is of type {kind}, which is no text")

    def try_out(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Take the text of each row, which costs nothing."""
        return self.render(batch, first_row)

    def render(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:  # noqa: ARG002 - as a template has it
        """Take the text of each row, null where there is none.

        :raises ColumnError: the column is missing.
        """
        return column_of(batch, self.columns[0], "content_column").cast(pa.string())


def _parse(text: str) -> list[str | _Field]:
    pieces: list[str | _Field] = []
    try:
        parsed = list(Formatter().parse(text))
    except (TypeError, ValueError) as error:
        raise TemplateError(f"{USED_BY} is not a template: {error}; braces of the text itself are doubled") from None
    for literal, column, spec, conversion in parsed:
        if literal:
            pieces.append(literal)
        if column is None:
            continue
        if not column:
            raise TemplateError(f"{USED_BY}: a field has no name; write the name of a column in it: {{first_name}}")
        if conversion:
            raise TemplateError(f"{USED_BY}: {{{column}!{conversion}}} has a conversion; only a format is allowed")
        if spec and ("{" in spec or "}" in spec):
            raise TemplateError(f"{USED_BY}: the format of {{{column}}} has a field in it; only a fixed one is allowed")
        pieces.append(_Field(column, spec or ""))
    return pieces


def _has_text(kind: pa.DataType) -> bool:
    kind, types = value_type(kind), pa.types
    numbers = (is_float, types.is_integer, types.is_decimal, types.is_boolean, types.is_null)
    times = (types.is_date, types.is_time, types.is_timestamp, types.is_duration)
    return any(check(kind) for check in (is_text, *numbers, *times))


def _check_format_of_text(field: _Field) -> None:
    try:
        format("", field.spec)
        # Of text, 05 would make 50000 of 5.
        fits = not re.match("0[0-9]", field.spec)
    except ValueError:
        fits = False
    if not fits:
        raise TemplateError(
            f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r}, which holds text, as every "
            f"column of a CSV file does: write {{{field.column}}}, or store it as numbers or dates, in Parquet"
        )


def _texts(column: pa.Array, field: _Field, first_row: int) -> pa.Array:
    """Write the values of a column: where that takes Python, each distinct one once."""
    written_by_arrow = is_text(column.type) or pa.types.is_integer(column.type)
    if pa.types.is_null(column.type) or (written_by_arrow and not field.spec):
        return column.cast(pa.string())
    values = _as_python_has_it(column)
    written = write_numbers(values, field.spec)
    if written is None:
        return _texts_by_python(values, field, column.type, first_row)
    if written.null_count == values.null_count:
        return written
    left = pc.if_else(pc.is_null(written), values, pa.nulls(1, values.type)[0])
    return pc.coalesce(written, _texts_by_python(left, field, column.type, first_row))


def _texts_by_python(values: pa.Array, field: _Field, stored_as: pa.DataType, first_row: int) -> pa.Array:
    distinct = pc.dictionary_encode(values)
    texts: list[str | None] = []
    for index, value in enumerate(distinct.dictionary.to_pylist()):
        try:
            texts.append(_written(value, field.spec))
        except (TypeError, ValueError, OverflowError):
            row = first_row + pc.index(distinct.indices, index).as_py()
            # Python's own words may quote the value, which is somebody's.
            raise TemplateError(
                f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r} "
                f"of type {stored_as}, first in row {row}"
            ) from None
    return strings(texts).take(distinct.indices)


def _is_full(column: pa.Array) -> bool:
    """Tell whether no value is null or NaN."""
    return not column.null_count and not (is_float(column.type) and pc.any(pc.is_nan(column)).as_py())


def _written(value: Any, spec: str) -> str:
    """Write a value as Python's ``format`` does, but without format a whole float as the integer that it was.

    A null that appears in an integer column makes it float on its way through pandas. Nobody wants to read
    "120.0 points", and a text that changes is another message: it would go out again.
    """
    if isinstance(value, float) and not spec and value.is_integer():
        value = int(value)
    return format(value, spec)


def _as_python_has_it(column: pa.Array) -> pa.Array:
    """Bring values into types for which Python has an equal one."""
    kind, types = column.type, pa.types
    if is_float(kind):
        if types.is_float32(kind):
            column = column.cast(pa.string())  # else 0.1 would read 0.10000000149011612
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), pa.nulls(1, pa.float64())[0], column)
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if types.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False)
    return column.cast(pa.time64("us"), safe=False) if types.is_time64(kind) else column
