"""``"Hi {first_name}, you owe {amount:.2f}"`` and a batch of rows → texts, a column at a time."""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError, TemplateError
from airflow_provider_sms.messages.number_formats import never_fails, write_numbers
from airflow_provider_sms.messages.texts import BLANKS, missing_words, plain_text, tidy, without_missing
from airflow_provider_sms.recipients.columns import (
    column_of,
    constant,
    field_of,
    holds_decimals,
    is_float,
    is_text,
    lost_digits,
    strings,
    text,
    value_type,
)
from airflow_provider_sms.recipients.values import (
    LOST_FROM,
    fits_text,
    fits_value_in_text,
    formatted,
    is_of_numbers,
    says_digits,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

USED_BY = "message"

NO_VALUE = "no value"
MISSING_WORD = (
    "a word that tools write where a value is missing, such as nan, None or NULL: leave it empty, or write it "
    "otherwise where it is meant, such as Null for a name"
)
LOST_DIGITS = "a float too large to tell it from its neighbours: store the column as integers or as text"
NO_NUMBER = "no number that the format in the message could write"
NO_DATE = "no date or time as in 2026-03-01 or 2026-03-01 09:30:00, which the format in the message could write"

_USUAL_DIGITS = 2  # of money
_NO_FLOAT = pa.nulls(1, pa.float64())[0]

# What one column of texts can hold, and what a number in one of the formats that never fail can take of it.
_MOST_BYTES = 2**31 - 1
_LONGEST_NUMBER = 400


class Fault(NamedTuple):
    """A reason for which rows have no text."""

    rows: pa.Array
    """A condition for each row; null counts as not met."""
    column: str
    reason: str


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
        self._pieces = _tidied(_parse(text))
        self._fields = [piece for piece in self._pieces if isinstance(piece, _Field)]
        self.columns = tuple(dict.fromkeys(field.column for field in self._fields))
        literals = "".join(piece for piece in self._pieces if isinstance(piece, str))
        self.constant = None if self._fields else literals
        self._literal_bytes = 4 * len(literals)
        self._never_blank = any(character.isalnum() for character in literals)

    def check(self, schema: pa.Schema) -> None:
        """Check that the columns are there and that their values can be written as text.

        :raises ColumnError: one is not, or cannot.
        :raises TemplateError: a format does not fit a column of text, or decimals have none that says their digits.
        """
        for field in self._fields:
            column = field_of(schema, field.column, USED_BY)
            kind = value_type(column.type)
            if not _has_text(kind):
                raise ColumnError(
                    f"{USED_BY}: column {field.column!r} is of type {column.type}, which has no form as text"
                )
            if is_text(kind):
                _check_format_of_text(field)
            if not says_digits(field.spec):
                _check_no_decimals(column, field)

    def render(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Render the text of each row.

        :param batch: rows with all columns of the template.
        :param first_row: index in the source of the batch's first row, for errors.
        :returns: strings; null where a value that the text needs is missing.
        :raises ColumnError: a column is missing.
        :raises TemplateError: a format does not fit the values of its column.
        """
        if self.constant is not None:
            return pa.repeat(text(self.constant), len(batch))
        pieces = [
            _texts(_values(batch, piece.column), piece, first_row) if isinstance(piece, _Field) else text(piece)
            for piece in self._pieces
        ]
        return pc.binary_join_element_wise(*pieces, constant(""))

    def try_out(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array | None:
        """Render the text of each row, unless it is known without that none will be null or blank, and nothing fails.

        :returns: as :meth:`render`; None: every row has a text.
        :raises ColumnError: a column is missing.
        :raises TemplateError: a format does not fit the values of its column.
        """
        columns = [(_values(batch, field.column), field.spec) for field in self._fields]
        longest = len(batch) * (self._literal_bytes + _LONGEST_NUMBER * len(columns)) + batch.nbytes * len(columns)
        if (
            self._never_blank
            and longest <= _MOST_BYTES
            and all(never_fails(column.type, spec) and not column.null_count for column, spec in columns)
        ):
            return None
        return self.render(batch, first_row)

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield why rows have no text, the most telling reason of a column first."""
        for field in self._fields:
            column = column_of(batch, field.column, USED_BY)
            yield from _faults_of(column, field.column)
            if is_text(column.type) and not fits_text(field.spec):
                reason = NO_NUMBER if is_of_numbers(field.spec) else NO_DATE
                values = _values(batch, field.column)
                yield Fault(pc.is_null(_texts(values, field, 0)), field.column, reason)


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
        """Take the text of each row, tidied; null where there is none.

        :raises ColumnError: the column is missing.
        """
        texts = tidy(column_of(batch, self.columns[0], "content_column").cast(pa.string()))
        found = missing_words(texts)
        return pc.if_else(found, constant(None), texts) if pc.any(found).as_py() else texts

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield why rows have no text."""
        yield from _faults_of(column_of(batch, self.columns[0], "content_column"), self.columns[0], empty=False)


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


def _tidied(pieces: list[str | _Field]) -> list[str | _Field]:
    """Tidy the text between the fields as values are tidied, and take the blanks off both ends."""
    tidied = [piece if isinstance(piece, _Field) else plain_text(piece) for piece in pieces]
    if tidied and isinstance(tidied[0], str):
        tidied[0] = tidied[0].lstrip(BLANKS)
    if tidied and isinstance(tidied[-1], str):
        tidied[-1] = tidied[-1].rstrip(BLANKS)
    return [piece for piece in tidied if piece != ""]


def _has_text(kind: pa.DataType) -> bool:
    kind, types = value_type(kind), pa.types
    numbers = (is_float, types.is_integer, types.is_decimal, types.is_boolean, types.is_null)
    times = (types.is_date, types.is_time, types.is_timestamp, types.is_duration)
    return any(check(kind) for check in (is_text, *numbers, *times))


def _check_format_of_text(field: _Field) -> None:
    if not fits_text(field.spec) and not fits_value_in_text(field.spec):
        raise TemplateError(
            f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r}: it is none of text, numbers, "
            f"dates or times. Write {{{field.column}}}, or a format such as {{{field.column}:.2f}}"
        )


def _check_no_decimals(column: pa.Field, field: _Field) -> None:
    kind = value_type(column.type)
    stored = pa.types.is_decimal(kind) and kind.scale > 0
    if not stored and not holds_decimals(column):
        return
    digits = kind.scale if stored and not holds_decimals(column) else _USUAL_DIGITS
    raise TemplateError(
        f"{USED_BY}: column {field.column!r} holds decimals ({column.type}), and 12.5 could be meant to read 12.5 or "
        f"12.50. Say with how many digits they are written: {{{field.column}:.{digits}f}}"
    )


def _values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Take the values of a column as a text may have them, null where there is none."""
    column = column_of(batch, name, USED_BY)
    if is_text(column.type):
        return without_missing(tidy(column))
    return _as_python_has_it(column)


def _faults_of(column: pa.Array, name: str, *, empty: bool = True) -> Iterator[Fault]:
    """Yield why values of a column are missing.

    :param empty: whether an empty text is.
    """
    if is_text(column.type):
        column = tidy(column)
        yield Fault(missing_words(column), name, MISSING_WORD)
        column = pc.if_else(pc.equal(column, constant("")), constant(None), column) if empty else column
    elif (lost := lost_digits(column)) is not None:
        yield Fault(lost, name, LOST_DIGITS)
    yield Fault(pc.is_null(column, nan_is_null=True), name, NO_VALUE)


def _texts(values: pa.Array, field: _Field, first_row: int) -> pa.Array:
    """Write the values of a column: where that takes Python, each distinct one once."""
    written_by_arrow = is_text(values.type) or pa.types.is_integer(values.type)
    if pa.types.is_null(values.type) or (written_by_arrow and not field.spec):
        return values.cast(pa.string())
    written = write_numbers(values, field.spec)
    if written is None:
        return _texts_by_python(values, field, first_row)
    if written.null_count == values.null_count:
        return written
    left = pc.if_else(pc.is_null(written), values, pa.nulls(1, values.type)[0])
    return pc.coalesce(written, _texts_by_python(left, field, first_row))


def _texts_by_python(values: pa.Array, field: _Field, first_row: int) -> pa.Array:
    write_value = formatted if is_text(values.type) and not fits_text(field.spec) else write
    distinct = pc.dictionary_encode(values)
    texts: list[str | None] = []
    for index, value in enumerate(distinct.dictionary.to_pylist()):
        try:
            texts.append(write_value(value, field.spec))
        except (TypeError, ValueError, OverflowError):
            row = first_row + pc.index(distinct.indices, index).as_py()
            # Python's own words may quote the value, which is somebody's.
            raise TemplateError(
                f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r} "
                f"of type {values.type}, first in row {row}"
            ) from None
    return strings(texts).take(distinct.indices)


def _as_python_has_it(column: pa.Array) -> pa.Array:
    """Bring values into types for which Python has an equal one, null where a number is none or has lost its digits."""
    kind, types = column.type, pa.types
    if is_float(kind):
        # Neither NaN nor what has lost its digits.
        kept = pc.less(pc.abs(column), constant(float(LOST_FROM[64])))
        return column if pc.all(kept).as_py() else pc.if_else(kept, column, _NO_FLOAT)
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if types.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False)
    return column.cast(pa.time64("us"), safe=False) if types.is_time64(kind) else column
