"""Templates: ``"Hi {first_name}, you owe {amount:.2f}"`` and a batch of rows → texts, a column at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.messages.arguments import Field, parse_template
from airflow_provider_sms.recipients.columns import (
    beyond_calendar,
    by_value,
    column_of,
    constant,
    field_of,
    is_float,
    is_text,
    mask,
    missing_words,
    tidy,
    value_type,
    whole_floats,
    without_missing,
    wrong_type,
)
from airflow_provider_sms.recipients.values import (
    LOST_FROM,
    LOST_TEXT,
    fits_text,
    format_value_in,
    is_number_format,
    sets_decimals,
    tidy_text,
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

# With more digits after the point the text of an Arrow decimal may have an exponent.
_is_fixed_point = re.compile(r"(?P<thousands>,?)\.(?P<digits>[0-6])f").fullmatch
_UNGROUPED = r"^([0-9]+)([0-9]{3})([.,]|$)"
_joins_values = re.compile("}[\u0300-\u036f\u200c\u200d\ufe0e\ufe0f]|[\u200c\u200d]{").search
"""A sign beside a field that joins its value, such as U+200C before a Persian plural: whole texts are tidied then."""
# Below this, a product of a float and a power of ten is off by less than 0.0002.
_SCALED_LIMIT = 2.0**40

Fault: TypeAlias = tuple[pa.Array, str, str]
"""A reason why some rows have no text: whether each row has the fault (null counts as False), its column, and words."""


class Template:
    """A text in the syntax of :meth:`str.format`, whose fields are the names of columns; no repr and no error shows it.

    Any name is taken literally: ``{a.b}`` is the value of the column ``a.b``.
    """

    def __init__(self, text: str) -> None:
        self._joins = _joins_values(text) is not None
        self._pieces = parse_template(text if self._joins else tidy_text(text))
        self._fields = [piece for piece in self._pieces if isinstance(piece, Field)]
        self.columns = tuple(dict.fromkeys(field.column for field in self._fields))
        """The columns that the text needs, in order, each once."""

    def check(self, schema: pa.Schema) -> None:
        """Check that the columns exist and that their values can be written as text."""
        for field in self._fields:
            column = field_of(schema, field.column, "message")
            kind = value_type(column.type)
            if not is_value(kind):
                raise wrong_type(column, "message", "which has no form as text")
            if field.spec and not _fits(kind, field.spec):
                raise TemplateError(
                    f"message: the format {field.spec!r} does not fit column {field.column!r} of type {kind}. Write "
                    f"{{{field.column}}}, or a format such as {{{field.column}:.2f}} or {{{field.column}:%d %B}}"
                )
            if pa.types.is_decimal(kind) and kind.scale > 0 and not sets_decimals(field.spec):
                raise TemplateError(
                    f"message: column {field.column!r} holds decimals ({column.type}), and 12.5 could be meant to "
                    "read 12.5 or 12.50. Name the number of digits: "
                    f"{{{field.column}:.{max(kind.scale, 2)}f}}"
                )

    def render(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the text of each row; null where a value that it needs is missing, or does not fit its format."""
        if not self._fields:
            return pa.repeat(constant("".join(map(str, self._pieces))), len(batch))
        pieces = [_texts(batch, piece) if isinstance(piece, Field) else constant(piece) for piece in self._pieces]
        texts = pc.binary_join_element_wise(*pieces, constant(""))
        return tidy(texts, tidy_text) if self._joins else texts

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield the reasons why rows have no text, the most telling one of each column first."""
        for field in self._fields:
            yield from _faults_of(batch, field.column, "message")
            reason = NO_NUMBER if is_number_format(field.spec) else NO_DATE
            yield pc.is_null(_texts(batch, field)), field.column, reason


class TextColumn:
    """A column that holds the finished texts, used like a template."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def check(self, schema: pa.Schema) -> None:
        """Check that the column exists and holds text."""
        column = field_of(schema, self.columns[0], "content_column")
        if not is_text(value_type(column.type)) and not pa.types.is_null(column.type):
            raise wrong_type(column, "content_column", "which is not text")

    def render(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the text of each row, tidied, with its line breaks; null where there is none."""
        column = column_of(batch, self.columns[0], "content_column").cast(pa.string())
        return pc.if_else(missing_words(tidy(column)), constant(None), tidy(column, tidy_text))

    def faults(self, batch: pa.RecordBatch) -> Iterator[Fault]:
        """Yield the reasons why rows have no text."""
        yield from _faults_of(batch, self.columns[0], "content_column")


def is_value(kind: pa.DataType) -> bool:
    """Return whether a type is that of text, numbers, booleans, dates or times."""
    types = pa.types
    numbers = (is_float, types.is_integer, types.is_decimal, types.is_boolean, types.is_null)
    times = (types.is_date, types.is_time, types.is_timestamp)
    return any(check(kind) for check in (is_text, *numbers, *times))


def too_large(column: pa.Array) -> tuple[pa.Array, str] | None:
    """Return which values neither a text nor a key can hold, and why; None where there are none."""
    if is_text(column.type):
        rows, reason = pc.match_substring_regex(column, LOST_TEXT), LOST_DIGITS
    elif is_float(column.type):
        rows, reason = pc.greater_equal(pc.abs(column), constant(float(LOST_FROM[64]))), LOST_DIGITS
    else:
        rows, reason = beyond_calendar(column), NO_CALENDAR
    return None if rows is None or not pc.any(rows).as_py() else (rows, reason)


def without_too_large(column: pa.Array) -> pa.Array:
    """Return a column with null in place of what :func:`too_large` finds: its rows are invalid."""
    found = too_large(column)
    return column if found is None else pc.if_else(found[0], pa.nulls(1, column.type)[0], column)


def _fits(kind: pa.DataType, spec: str) -> bool:
    """Return whether values of a type can be written in a format; a text may hold a number, a date or a time."""
    fits_value = is_number_format(spec) or "%" in spec
    if is_text(kind) or pa.types.is_null(kind):
        return fits_text(spec) or fits_value
    return fits_value and is_number_format(spec) != pa.types.is_temporal(kind)


def _faults_of(batch: pa.RecordBatch, name: str, used_by: str) -> Iterator[Fault]:
    """Yield the reasons why values of a column are missing."""
    column = column_of(batch, name, used_by)
    if is_text(column.type):
        column = tidy(column)
        yield missing_words(column), name, MISSING_WORD
        column = without_missing(column)
    if (found := too_large(column)) is not None:
        yield found[0], name, found[1]
    yield pc.is_null(column, nan_is_null=True), name, NO_VALUE


def _texts(batch: pa.RecordBatch, field: Field) -> pa.Array:
    """Write the values of a column; null for those that are missing or do not fit the format."""
    column, spec, types = column_of(batch, field.column, "message"), field.spec, pa.types
    kind = column.type
    if is_text(kind):
        values = without_too_large(without_missing(tidy(column)))
        return by_value(values, lambda value: _written(value, spec)) if spec else values
    if types.is_null(kind) or (types.is_integer(kind) and not spec):
        return column.cast(pa.string())
    values = _in_python_types(column)
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)):
        return by_value(values, lambda value: _written(value, spec))
    texts = write_numbers(values, spec)
    left = pc.if_else(pc.is_null(texts), values, pa.nulls(1, kind)[0])
    return pc.coalesce(texts, by_value(left, lambda value: _written(value, spec)))


def _written(value: Any, spec: str) -> str | None:
    try:
        return format_value_in(value, spec) if isinstance(value, str) and not fits_text(spec) else write(value, spec)
    except (TypeError, ValueError, OverflowError):
        return None


def _in_python_types(column: pa.Array) -> pa.Array:
    """Cast values to types that Python has too; null for NaN and for values that are too large."""
    column, types = without_too_large(column), pa.types
    if is_float(column.type):
        return pc.if_else(pc.is_nan(column), pa.nulls(1, column.type)[0], column)
    if types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column.cast(pa.time64("us"), safe=False) if types.is_time64(column.type) else column


def write_numbers(column: pa.Array, spec: str) -> pa.Array:
    """Write numbers in common formats, the whole column at once: amounts one by one make a send a sixth slower.

    Null stands where :func:`~airflow_provider_sms.recipients.values.write` must write: the format is another one, or
    the number is negative, large, or nearly midway between two texts.
    """
    fixed_point = _is_fixed_point(spec)
    if fixed_point is None:
        return pa.nulls(len(column), pa.string()) if spec else whole_floats(column).cast(pa.string())
    column, decimals = column.cast(pa.float64(), safe=False), int(fixed_point["digits"])
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    with np.errstate(all="ignore"):
        scaled = values * 10.0**decimals
        rounded = np.rint(scaled)
        sure = ~np.signbit(values) & (rounded < _SCALED_LIMIT) & (np.abs(scaled - rounded) < 0.499)  # noqa: PLR2004
    digits = np.zeros((len(values), 2), np.int64)
    np.copyto(digits[:, 0], rounded, where=sure, casting="unsafe")
    texts = pa.Array.from_buffers(pa.decimal128(19, decimals), len(values), [None, pa.py_buffer(digits)])
    texts = texts.cast(pa.string())
    while fixed_point["thousands"] and pc.any(pc.match_substring_regex(texts, _UNGROUPED)).as_py():
        texts = pc.replace_substring_regex(texts, _UNGROUPED, r"\1,\2\3")
    return pc.if_else(pc.and_(mask(sure), pc.is_valid(column)), texts, constant(None))
