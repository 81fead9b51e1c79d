"""Sources that can be read only once, kept in a nameless file from which they are read as often as needed.

The check, the plan, the approval and the send then see the same rows, in memory that does not grow with their number.
The file is unlinked from the start: no other process can open it, and it is gone with this one, however that ends.

The rows arrive a piece at a time, and each piece has the types of its own values: a column may hold whole numbers in
one piece, and a word in the next. Pieces are kept as they are, and cast to the type of the whole column when they are
read.
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import SourceError, SourceUnavailableError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.columns import (
    DECIMALS,
    NESTED,
    check_text,
    fields_of,
    holds_decimals,
    is_text,
    plain,
    plain_type,
    type_words,
    whole,
)
from airflow_provider_sms.recipients.files import rebatch
from airflow_provider_sms.recipients.memory import check_names
from airflow_provider_sms.recipients.values import LOST_FROM, mixed_value_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

PIECE_ROWS = 10_000
"""The most rows of a piece: a producer may hand out millions at once, and a piece is held in memory."""
_DIGITS_OF_INTEGERS = 20
_MOST_DIGITS = {pa.decimal128: 38, pa.decimal256: 76}
_BUFFER = 1 << 20


def spool(pieces: Iterable[pa.RecordBatch], description: str) -> SpooledSource:
    """Read rows to their end, and return the source that holds them. Close it to free its room on disk.

    :param pieces: the rows in order; columns may come, go, and change their types from piece to piece.
    :param description: the name of the source in a log, without values of rows.
    :raises SourceError: two columns have the same name, or a column has values from which no column can be made.
    :raises SourceUnavailableError: the folder for temporary files has no room; a retry may succeed.
    """
    with _naming_folder(description):
        spooled = _Spool()
    try:
        columns: dict[str, _Column] = {}
        rows = 0
        for piece in pieces:
            check_names(piece.schema.names, description)
            for start in range(0, piece.num_rows, PIECE_ROWS):
                part = _plain(piece.slice(start, PIECE_ROWS), description)
                for name, values in zip(part.schema.names, part.columns, strict=True):
                    columns.setdefault(name, _Column()).add(part.schema.field(name), values)
                rows += part.num_rows
                with _naming_folder(description):
                    spooled.write(part)
            for each in piece.schema:  # also of a piece without rows, which may be the only one
                kind = NESTED if pa.types.is_nested(each.type) else plain_type(each.type)
                columns.setdefault(each.name, _Column()).seen(each.with_type(kind))
        with _naming_folder(description):
            spooled.finish()
        schema = pa.schema([column.field(name, description) for name, column in columns.items()])
    except BaseException:
        spooled.close()
        raise
    size = f"{rows} {by_count(rows, 'row')}, {len(schema)} {by_count(len(schema), 'column')}"
    return SpooledSource(spooled, schema, f"{description} ({size})")


@contextmanager
def _naming_folder(description: str) -> Iterator[None]:
    """Turn an error of the disk into one that names the folder.

    :raises SourceUnavailableError: a file cannot be created or written there.
    """
    try:
        yield
    except OSError as error:
        try:
            folder = tempfile.gettempdir()
        except OSError:  # again: a folder without room is not accepted for temporary files
            folder = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - it is named in an error alone
        raise SourceUnavailableError(
            f"{description}: its rows cannot be kept in {folder}, the folder for temporary files: "
            f"{error.strerror or type(error).__name__}. Nothing was sent. Make room there, or set TMPDIR to a folder "
            "that has room"
        ) from None


class SpooledSource:
    """Rows in a nameless file, as :func:`spool` keeps them."""

    def __init__(self, spooled: _Spool, schema: pa.Schema, description: str) -> None:
        self.schema = schema
        self._spooled = spooled
        self._description = description

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; each call starts anew, independently of others.

        :param columns: the columns to keep; None means all.
        :param batch_size: rows in each batch but the last, which may have fewer.
        """
        if not self.schema.names:
            return  # no row, and so no column either
        schema = fields_of(self.schema, columns)
        with closing(self._spooled.read()) as pieces:
            yield from rebatch((_in_schema(piece, schema) for piece in pieces), batch_size)

    def describe(self) -> str:
        """Return a description of the source, without any of its values."""
        return self._description

    def close(self) -> None:
        """Free the room on disk. Nothing can be read afterwards."""
        self._spooled.close()


class _Spool:
    """A nameless file with pieces in Arrow's stream format: one stream for each run of pieces of one schema."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile(prefix="airflow-provider-sms-") as file:
            # Closed with this object, not with the file: Python warns of a file that nobody closed.
            self._descriptor = os.dup(file.fileno())
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._sink = os.fdopen(self._descriptor, "wb", buffering=_BUFFER, closefd=False)
        self._writer: pa.RecordBatchWriter | None = None
        self._schema: pa.Schema | None = None
        self._streams: list[int] = []
        """Where each stream begins."""

    def write(self, piece: pa.RecordBatch) -> None:
        if self._writer is None or piece.schema != self._schema:
            self._end_stream()
            self._streams.append(self._sink.tell())
            self._schema = piece.schema
            options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
            self._writer = pa.ipc.new_stream(self._sink, piece.schema, options=options)
        self._writer.write_batch(piece)

    def finish(self) -> None:
        self._end_stream()
        self._sink.flush()

    def read(self) -> Generator[pa.RecordBatch, None, None]:
        for start in self._streams:
            reading = io.BufferedReader(_Reading(self, start), _BUFFER)
            with pa.PythonFile(reading, "r") as file, pa.ipc.open_stream(file) as stream:
                yield from stream

    def read_at(self, position: int, size: int) -> bytes:
        if not self._close.alive:
            raise ValueError("the source is closed")
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._sink.close()  # what is not written yet need not be
        self._close()

    def _end_stream(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class _Reading(io.RawIOBase):
    """The file from a given place on, with a position of its own: several readers share one descriptor."""

    def __init__(self, spooled: _Spool, position: int) -> None:
        self._spooled = spooled
        self._position = position

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # io calls it with a memoryview
        found = self._spooled.read_at(self._position, len(buffer))
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)


@dataclass(slots=True)
class _Column:
    """The facts about a column from all pieces: enough to choose a type that holds all of its values."""

    types: dict[pa.DataType, None] = field(default_factory=dict)
    """The types of the pieces, in the order of their first values."""
    holds_decimals: bool = False
    has_wide_integers: bool = False
    """Whether an integer is so large that a float could not hold it."""

    def seen(self, described: pa.Field) -> None:
        if not pa.types.is_null(described.type):
            self.types.setdefault(described.type)
        self.holds_decimals |= holds_decimals(described)

    def add(self, described: pa.Field, values: pa.Array) -> None:
        self.seen(described)
        if pa.types.is_integer(values.type) and not self.has_wide_integers:
            span = pc.min_max(values).as_py()
            ends = [end for end in span.values() if end is not None]
            self.has_wide_integers = any(abs(end) >= LOST_FROM[64] for end in ends)

    def field(self, name: str, description: str) -> pa.Field:
        """Return the column as the source has it: as text where no other type holds all of its values.

        :raises SourceError: some of the values have no form as text.
        """
        found = list(self.types)
        kind = pa.null() if not found else found[0] if len(found) == 1 else self._common(found)
        if kind is None:
            if not all(map(_has_text, found)):
                raise SourceError(
                    f"{description}: no column can be made of the values of {mask_numbers_in(name)!r}, which are of "
                    f"type {', '.join(map(type_words, found))}; convert them, or leave the column out"
                )
            kind = pa.string()
        return pa.field(name, kind, metadata=DECIMALS if self.holds_decimals else None)

    def _common(self, found: list[pa.DataType]) -> pa.DataType | None:
        types = pa.types
        if all(map(types.is_signed_integer, found)):
            return pa.int64()
        if all(types.is_signed_integer(kind) or types.is_float64(kind) for kind in found):
            return None if self.has_wide_integers else pa.float64()
        if all(types.is_signed_integer(kind) or types.is_decimal(kind) for kind in found):
            return _common_decimal(found)
        moments = [kind for kind in found if not types.is_date32(kind)]
        if len(moments) == 1 and types.is_timestamp(moments[0]) and moments[0].tz is None:
            return moments[0]
        return None


def _common_decimal(found: list[pa.DataType]) -> pa.DataType | None:
    sizes = [(kind.precision, kind.scale) if pa.types.is_decimal(kind) else (_DIGITS_OF_INTEGERS, 0) for kind in found]
    scale = max(scale for _, scale in sizes)
    digits = max(precision - scale for precision, scale in sizes) + scale
    return next((make(digits, scale) for make, most in _MOST_DIGITS.items() if digits <= most), None)


def _has_text(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        is_text(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_time(kind)
        or types.is_timestamp(kind)
    )


def _plain(piece: pa.RecordBatch, description: str) -> pa.RecordBatch:
    """Return a piece with plain columns.

    :raises SourceError: a column holds values that Arrow cannot make plain, or text that is not UTF-8.
    """
    try:
        arrays = [_values(column) for column in piece.columns]
    except pa.ArrowException:
        raise SourceError(
            f"{description}: pyarrow {pa.__version__} cannot read all values; install a newer one, or convert them to "
            "text or numbers"
        ) from None
    fields = [each.with_type(array.type) for each, array in zip(piece.schema, arrays, strict=True)]
    made = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    check_text(made, description)
    return made


def _values(column: pa.Array) -> pa.Array:
    # Nested values have no form as text and identify nothing, and each piece may have its own type for them.
    return pa.nulls(len(column), NESTED) if pa.types.is_nested(column.type) else whole(plain(column))


def _in_schema(piece: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return some columns of a piece in the types of the whole source; a column that the piece lacks is null."""
    columns = []
    for each in schema:
        index = piece.schema.get_field_index(each.name)
        column = pa.nulls(piece.num_rows, each.type) if index < 0 else piece.column(index)
        columns.append(column if column.type == each.type else _cast(column, each.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind) and not pa.types.is_null(column.type):
        return pa.array([mixed_value_text(value) for value in column.to_pylist()], pa.string())
    return column.cast(kind)
