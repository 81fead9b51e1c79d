"""Templates: ``"Hi {first_name}, you owe {amount:.2f}"`` and a batch of rows → texts, a column at a time."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError, TemplateError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.number_formats import write_numbers
from airflow_provider_sms.messages.plain_text import BLANKS, plain_text, tidy_text
from airflow_provider_sms.messages.template_syntax import USED_BY, Field, parse_template
from airflow_provider_sms.messages.texts import missing_words, tidy, without_missing
from airflow_provider_sms.recipients.columns import (
    beyond_calendar,
    column_of,
    constant,
    field_of,
    is_float,
    is_text,
    lost_digits,
    strings,
    text,
    type_words,
    value_type,
)
from airflow_provider_sms.recipients.values import (
    LOST_FROM,
    fits_text,
    fits_value_in_text,
    format_value_in,
    is_number_format,
    sets_decimals,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_VALUE = "no value"
MISSING_WORD = (
    "a word that tools write where a value is missing, such as nan, NULL or a spreadsheet's #REF!: leave it empty, or "
    "spell it differently if it is meant, such as Null for a name"
)
LOST_DIGITS = "a float too large to be told from its neighbours: store the column as integers or as text"
NO_CALENDAR = "a date or time out of range: dates go from the year 1 to 9999"
NO_NUMBER = "not a number such as 1250.50, which the format in the message can write"
NO_DATE = "not a date or time such as 2026-03-01 or 2026-03-01 09:30:00, which the format in the message can write"

_USUAL_DIGITS = 2  # of an amount of money
_INTO_A_VALUE = re.compile(r"[.\[]")
"""The beginning of an attribute or an index, in the syntax of :meth:`str.format`."""
_NO_FLOAT = pa.nulls(1, pa.float64())[0]


class Fault(NamedTuple):
    """A reason why some rows have no text."""

    rows: pa.Array
    """Whether each row has the fault; null counts as False."""
    column: str
    reason: str


class Template:
    """A text with places for the values of columns, in the syntax of :meth:`str.format`.

    A field is the exact name of a column, so ``{a.b}`` names the column ``a.b``, and may have a format, as in
    ``{amount:.2f}``. Without one, a whole number reads as such, even in a float column: ``120``. Literal braces are
    doubled. The text appears in no repr and in no error.

    :param text: the template; without fields all recipients get the same text.
    :raises TemplateError: the syntax is wrong, a field names no column, or it has a conversion such as ``!r``.
    """

    __slots__ = ("_fields", "_joins", "_pieces", "columns")

    columns: tuple[str, ...]
    """The columns that the text needs, in order, each once."""

    def __init__(self, text: str) -> None:
        pieces = parse_template(text)
        self._joins = _joins_values(pieces)
        self._pieces = pieces if self._joins else _tidied(pieces)
        self._fields = [piece for piece in self._pieces if isinstance(piece, Field)]
        self.columns = tuple(dict.fromkeys(field.column for field in self._fields))

    def check(self, schema: pa.Schema) -> None:
        """Check that the columns exist and that their values can be written as text.

        :raises ColumnError: a column is missing, or has values without a text form.
        :raises TemplateError: a format does not fit a column of text, or decimals lack one that sets their digits.
        """
        for field in self._fields:
            column = _column_of(schema, field)
            kind = value_type(column.type)
            if not _has_text(kind):
                raise ColumnError(
                    f"{USED_BY}: column {mask_numbers_in(field.column)!r} is of type {type_words(column.type)}, which "
                    "has no form as text"
                )
            if is_text(kind):
                _check_format_of_text(field)
            _check_zone(kind, field)
            if not sets_decimals(field.spec):
                _check_no_decimals(column, field)

    def render(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Render the text of each row.

        :param batch: rows with all columns of the template.
        :param first_row: index in the source of the batch's first row, for errors.
        :returns: strings; null where a value that the text needs is missing.
        :raises ColumnError: a column is missing.
        :raises TemplateError: a format does not fit the values of its column.
        """
        if not self._fields:
            return pa.repeat(text("".join(map(str, self._pieces))), len(batch))
        pieces = [
            _texts(_values(batch, piece.column), piece, first_row) if isinstance(piece, Field) else text(piece)
            for piece in self._pieces
        ]
        texts = pc.binary_join_element_wise(*pieces, constant(""))
        return tidy(texts, tidy_text) if self._joins else texts

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield the reasons why rows have no text, the most telling one of each column first."""
        for field in self._fields:
            column = column_of(batch, field.column, USED_BY)
            yield from _faults_of(column, field.column)
            if is_text(column.type) and not fits_text(field.spec):
                reason = NO_NUMBER if is_number_format(field.spec) else NO_DATE
                values = _values(batch, field.column)
                yield Fault(pc.is_null(_texts(values, field, 0)), field.column, reason)


class TextColumn:
    """A column that holds the finished texts, used like a template.

    :param column: the name of the column.
    """

    __slots__ = ("columns",)

    columns: tuple[str, ...]
    """The column alone."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def check(self, schema: pa.Schema) -> None:
        """Check that the column exists and holds text.

        :raises ColumnError: it is missing, or of another type.
        """
        kind = field_of(schema, self.columns[0], "content_column").type
        if not is_text(value_type(kind)) and not pa.types.is_null(kind):
            raise ColumnError(
                f"content_column: column {mask_numbers_in(self.columns[0])!r} is of type {type_words(kind)}, which is "
                "not text"
            )

    def render(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:  # noqa: ARG002 - as a template has it
        """Return the text of each row, tidied, with its line breaks; null where there is none.

        :raises ColumnError: the column is missing.
        """
        column = column_of(batch, self.columns[0], "content_column").cast(pa.string())
        texts, found = tidy(column, tidy_text), missing_words(tidy(column))
        return pc.if_else(found, constant(None), texts) if pc.any(found).as_py() else texts

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield the reasons why rows have no text."""
        yield from _faults_of(column_of(batch, self.columns[0], "content_column"), self.columns[0], empty=False)


def _joins_values(pieces: list[str | Field]) -> bool:
    """Return whether a character beside a field joins the value, such as U+200C before the plural of a Persian word."""
    edges = [character for piece in pieces if isinstance(piece, str) for character in (piece[:1], piece[-1:])]
    return len(pieces) > 1 and any(unicodedata.category(each) in {"Cf", "Mn", "Mc", "Me"} for each in edges if each)


def _tidied(pieces: list[str | Field]) -> list[str | Field]:
    """Tidy the text between the fields, and strip the blanks at both ends."""
    tidied = [piece if isinstance(piece, Field) else plain_text(piece) for piece in pieces]
    if tidied and isinstance(tidied[0], str):
        tidied[0] = tidied[0].lstrip(BLANKS)
    if tidied and isinstance(tidied[-1], str):
        tidied[-1] = tidied[-1].rstrip(BLANKS)
    return [piece for piece in tidied if piece != ""]


def _column_of(schema: pa.Schema, field: Field) -> pa.Field:
    """Return the column of a field.

    :raises ColumnError: there is no such column. Where the field seems to reach into a value, the error says
        that no field can.
    """
    try:
        return field_of(schema, field.column, USED_BY)
    except ColumnError as error:
        if field.column in schema.names or not _INTO_A_VALUE.search(field.column):
            raise
        end = "" if str(error).endswith("?") else "."
        raise ColumnError(
            f"{error}{end} A field is the whole name of a column: attributes and indexes, as in {{{field.column}}}, "
            "are not allowed. Put the value into a column of its own, and name that column"
        ) from None


def _has_text(kind: pa.DataType) -> bool:
    kind, types = value_type(kind), pa.types
    numbers = (is_float, types.is_integer, types.is_decimal, types.is_boolean, types.is_null)
    times = (types.is_date, types.is_time, types.is_timestamp)
    return any(check(kind) for check in (is_text, *numbers, *times))


def _check_format_of_text(field: Field) -> None:
    if not fits_text(field.spec) and not fits_value_in_text(field.spec):
        raise TemplateError(
            f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r}: the column is not text, "
            f"numbers, dates or times. Write {{{field.column}}}, or a format such as {{{field.column}:.2f}}"
        )


def _check_zone(kind: pa.DataType, field: Field) -> None:
    zone = getattr(kind, "tz", None)
    try:
        if zone is not None:
            pa.lib.string_to_tzinfo(zone)
    except Exception:  # noqa: BLE001  # each library of time zones has an error of its own
        raise ColumnError(
            f"{USED_BY}: column {field.column!r} has times in the zone {zone!r}, which is not known here"
        ) from None


def _check_no_decimals(column: pa.Field, field: Field) -> None:
    kind = value_type(column.type)
    if not pa.types.is_decimal(kind) or kind.scale <= 0:
        return
    raise TemplateError(
        f"{USED_BY}: column {field.column!r} holds decimals ({column.type}), and 12.5 could be meant to read 12.5 or "
        f"12.50. Name the number of digits: {{{field.column}:.{max(kind.scale, _USUAL_DIGITS)}f}}"
    )


def _values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of a column as they may stand in a text, null where there is none."""
    column = column_of(batch, name, USED_BY)
    if is_text(column.type):
        return without_missing(tidy(column))
    return _in_python_types(column)


def _faults_of(column: pa.Array, name: str, *, empty: bool = True) -> Iterator[Fault]:
    """Yield the reasons why values of a column are missing.

    :param empty: whether an empty text counts as missing.
    """
    if is_text(column.type):
        column = tidy(column)
        yield Fault(missing_words(column), name, MISSING_WORD)
        column = pc.if_else(pc.equal(column, constant("")), constant(None), column) if empty else column
    else:
        yield from too_large(column, name)
    yield Fault(pc.is_null(column, nan_is_null=True), name, NO_VALUE)


def too_large(column: pa.Array, name: str) -> Iterator[Fault]:
    """Yield the faults of values that neither a text nor a key can hold."""
    for rows, reason in ((lost_digits(column), LOST_DIGITS), (beyond_calendar(column), NO_CALENDAR)):
        if rows is not None and pc.any(rows).as_py():
            yield Fault(rows, name, reason)


def _texts(values: pa.Array, field: Field, first_row: int) -> pa.Array:
    """Write the values of a column; where that takes Python, each distinct value once."""
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


def _texts_by_python(values: pa.Array, field: Field, first_row: int) -> pa.Array:
    write_value = format_value_in if is_text(values.type) and not fits_text(field.spec) else write
    distinct = pc.dictionary_encode(values)
    texts: list[str | None] = []
    for index, value in enumerate(distinct.dictionary.to_pylist()):
        try:
            texts.append(write_value(value, field.spec))
        except (TypeError, ValueError, OverflowError):
            row = first_row + pc.index(distinct.indices, index).as_py()
            # Python's own words may quote the value, which is personal.
            raise TemplateError(
                f"{USED_BY}: the format {field.spec!r} does not fit column {field.column!r} "
                f"of type {values.type}, first in row {row}"
            ) from None
    return strings(texts).take(distinct.indices)


def _in_python_types(column: pa.Array) -> pa.Array:
    """Cast values to types that Python has too; null for NaN and for values that are too large."""
    kind, types = column.type, pa.types
    if (beyond := beyond_calendar(column)) is not None and pc.any(beyond).as_py():
        column = pc.if_else(beyond, pa.nulls(1, kind)[0], column)
    if is_float(kind):
        kept = pc.less(pc.abs(column), constant(float(LOST_FROM[64])))
        return column if pc.all(kept).as_py() else pc.if_else(kept, column, _NO_FLOAT)
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column.cast(pa.time64("us"), safe=False) if types.is_time64(kind) else column
