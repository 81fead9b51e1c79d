"""Files that are one table together → record batches, in the order of the files and of the rows in them."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.columns import check_text, field_of, is_text, plain
from airflow_provider_sms.recipients.memory import check_names

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from airflow_provider_sms.recipients.file_format import Format, Header
    from airflow_provider_sms.recipients.paths import DataFile


# Headers of files in an object store are waited for, so many at once.
_HEADERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Part:
    """One file and what its header and its path say."""

    file: DataFile
    schema: pa.Schema
    """Its columns, with those that its path gives."""
    constants: dict[str, pa.Scalar]
    """The columns that its path gives."""


class FileSource:
    """Files of one table and one format, in the order given.

    :param format: how to read them.
    :param files: the files; their headers are read at once, their rows only when they are asked for.
    :param description: what to call them in a log.
    :raises SourceError: names a file that is not of the format, or whose columns do not go together with the others'.
    """

    def __init__(self, format: Format, files: Sequence[DataFile], description: str) -> None:  # noqa: A002 - its name
        self._format = format
        self._description = description
        headers = _read_headers(format, files)
        self._parts = _parts(files, headers)
        self.schema: pa.Schema = _unify(self._parts)
        counts = [header.num_rows for header in headers]
        self.num_rows: int | None = None if None in counts else sum(count or 0 for count in counts)

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Go through the rows in order; each call starts anew, beside others.

        :param columns: the columns that are needed; only these are kept, of Parquet only these are read. None: all.
        :param batch_size: rows in each batch but the last, which has fewer, however the rows lie in files.
        :raises SourceError: a file cannot be read to its end, or lacks a column that others have.
        """
        names = self.schema.names if columns is None else list(dict.fromkeys(columns))
        schema = pa.schema([field_of(self.schema, name, "columns") for name in names])
        with closing(self._batches(schema, batch_size)) as batches:
            yield from rebatched(batches, batch_size)

    def _batches(self, schema: pa.Schema, batch_size: int) -> Generator[pa.RecordBatch, None, None]:
        for part in self._parts:
            for name in schema.names:
                if name not in part.schema.names:
                    raise SourceError(f"{part.file.name}: has no column {name!r}, unlike other files of the source")
            names = [name for name in schema.names if name not in part.constants]
            with closing(self._format.read_rows(part.file, names, batch_size)) as batches:
                for batch in batches:
                    yield _in_schema(batch, part, schema)

    def describe(self) -> str:
        """Say which files they are."""
        return self._description


def _read_headers(format: Format, files: Sequence[DataFile]) -> list[Header]:  # noqa: A002 - its name
    if not all(getattr(file.filesystem, "async_impl", False) for file in files):
        # Others, such as FTP, may have one connection that cannot be shared.
        return [format.read_header(file) for file in files]
    with ThreadPoolExecutor(min(_HEADERS_AT_ONCE, len(files))) as pool:
        return list(pool.map(format.read_header, files))


def _parts(files: Sequence[DataFile], headers: Sequence[Header]) -> list[_Part]:
    kinds = _partition_kinds(files)
    known: dict[pa.Schema, pa.Schema] = {}  # one for all files that are alike: they may be many, and wide
    parts = []
    for file, header in zip(files, headers, strict=True):
        check_names(header.schema.names, file.name)
        constants = {
            name: pa.scalar(int(text) if text is not None and pa.types.is_integer(kinds[name]) else text, kinds[name])
            for name, text in file.partitions.items()
            if name not in header.schema.names  # a column in the file itself goes before one of its path
        }
        given = [pa.field(name, constant.type) for name, constant in constants.items()]
        schema = pa.schema([*header.schema, *given]) if given else header.schema
        parts.append(_Part(file, known.setdefault(schema, schema), constants))
    return parts


def _partition_kinds(files: Sequence[DataFile]) -> dict[str, pa.DataType]:
    """Find the columns that the paths give: integers where all their values are, else text."""
    values: dict[str, list[str]] = {}
    for file in files:
        for name, value in file.partitions.items():
            values.setdefault(name, []).extend([] if value is None else [value])
    # A leading zero says that it is a code and not a count.
    return {
        name: pa.int64() if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", value) for value in found) else pa.string()
        for name, found in values.items()
    }


def _unify(parts: Sequence[_Part]) -> pa.Schema:
    """Find the columns of all files together; a type may widen, but not turn into another.

    :raises SourceError: names the first file and column that do not fit those before.
    """
    first: dict[pa.Schema, _Part] = {}
    for part in parts:
        first.setdefault(part.schema, part)
    schema = parts[0].schema
    for part in first.values():
        for field in part.schema:
            known = schema.field(field.name) if field.name in schema.names else field
            try:
                if _would_change(known.type, field.type):
                    raise pa.ArrowInvalid
                pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="permissive")
            except pa.ArrowException:
                raise SourceError(
                    f"{part.file.name}: column {field.name!r} is of type {field.type}, but of type {known.type} in "
                    f"{parts[0].file.name} or another file before it; write all files with one type"
                ) from None
        schema = pa.unify_schemas([schema, part.schema], promote_options="permissive")
    return schema


def _would_change(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether Arrow's common type of two could change values, as decimals to floats, or texts to bytes."""
    types = pa.types
    return one != other and any(
        (types.is_floating(a) and types.is_decimal(b))
        or (types.is_float16(a) and not types.is_null(b))
        or (is_text(a) and not types.is_null(b))
        for a, b in ((one, other), (other, one))
    )


def _in_schema(batch: pa.RecordBatch, part: _Part, schema: pa.Schema) -> pa.RecordBatch:
    """Bring rows of one file into the types of all files."""
    columns = []
    for field in schema:
        if field.name in part.constants:
            column = pa.repeat(part.constants[field.name], batch.num_rows)
        else:
            column = plain(batch.column(batch.schema.get_field_index(field.name)))
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowException:
            raise SourceError(
                f"{part.file.name}: column {field.name!r} has values of type {column.type} that do not fit the type "
                f"{field.type} of the other files; write all files with one type"
            ) from None
    converted = pa.RecordBatch.from_arrays(columns, schema=schema)
    check_text(converted, part.file.name)
    return converted


def rebatched(batches: Iterable[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Give the same rows in the same order.

    :param batches: of one schema.
    :param batch_size: rows in each batch but the last, which has fewer.
    """
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, batch_size - rows)
            held.append(piece)
            start += piece.num_rows
            rows += piece.num_rows
            if rows == batch_size:
                yield _combined(held)
                held, rows = [], 0
    if held:
        yield _combined(held)


def _combined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch
