"""The many Arrow types of one thing, brought down to one: ``string``, floats of 64 bits, one plain array."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.messages.arrow import constant, whole
from airflow_provider_sms.messages.values import LOST_FROM

_MOST_NAMES = 20


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text of any width; a dictionary of text is not."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def is_float(kind: pa.DataType) -> bool:
    """Tell whether a type is a float; those of 16 bits hold nothing that anybody would send."""
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Look through a dictionary encoding at the type of its values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column of a type is read as."""
    kind = value_type(kind)
    if is_text(kind):
        return pa.string()
    return pa.float64() if is_float(kind) else kind


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Bring a column into one array, dictionaries decoded, text of any width as ``string``, floats in 64 bits.

    A float of 32 bits becomes the number that it was written as: 0.1, and not 0.10000000149011612. One that is too
    large to tell it from its neighbours becomes infinite: its digits are lost, and nothing takes infinity for a value.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float32(column.type):
        lost = pc.greater_equal(pc.abs(column.cast(pa.float64())), constant(float(LOST_FROM[32])))
        return pc.if_else(lost, constant(float("inf")), column.cast(pa.string()).cast(pa.float64()))
    return column.cast(pa.string()) if is_text(column.type) else column


def lost_digits(column: pa.Array) -> pa.Array | None:
    """Return which values are floats too large to say which integer they were; NaN is none of them.

    :param column: plain.
    :returns: a condition for each row, null for null; None where the type cannot hold such values.
    """
    if not is_float(column.type):
        return None
    return pc.greater_equal(pc.abs(column), constant(float(LOST_FROM[64])))


DECIMALS = {b"airflow_provider_sms": b"decimals"}
"""Metadata of a column that was made of Python's decimals: its type depends on the values, and so says nothing of how
any of them is meant to be written."""


def holds_decimals(field: pa.Field) -> bool:
    """Return whether a column was made of Python's decimals."""
    return DECIMALS.items() <= (field.metadata or {}).items()


def field_of(schema: pa.Schema, name: str, used_by: str) -> pa.Field:
    """Find a column.

    :param used_by: the argument that names it, for the error.
    :raises ColumnError: there is no such column, or more than one.
    """
    indices = schema.get_all_field_indices(name)
    if len(indices) == 1:
        return schema.field(indices[0])
    if indices:
        raise ColumnError(f"{used_by}: {len(indices)} columns of the source are named {name!r}")
    names = ", ".join(repr(column) for column in schema.names[:_MOST_NAMES])
    more = len(schema.names) - _MOST_NAMES
    raise ColumnError(
        f"{used_by}: the source has no column {name!r}; it has {names}" + (f" and {more} more" if more > 0 else "")
    )


def column_of(batch: pa.RecordBatch, name: str, used_by: str) -> pa.Array:
    """Take a column of a batch, plain.

    :param used_by: the argument that names it, for the error.
    :raises ColumnError: there is no such column, or more than one.
    """
    field_of(batch.schema, name, used_by)
    return whole(plain(batch.column(batch.schema.get_field_index(name))))


def check_text(batch: pa.RecordBatch, description: str) -> None:
    """Refuse text that is not UTF-8: it would fail at some later row, and not as an error of ours.

    :param description: what to call the source.
    :raises SourceError: names the first column with such text.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise SourceError(f"{description}: column {name!r} holds text that is not UTF-8, or is damaged") from None
