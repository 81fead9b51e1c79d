"""The many Arrow types of one thing, brought down to one: text is ``string``, and a column is one plain array."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.exceptions import ColumnError, SourceError

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


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Bring a column into one array, dictionaries decoded, text of any width as ``string``."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if is_text(column.type) else column


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
    return plain(batch.column(batch.schema.get_field_index(name)))


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
