"""Files that together form one table → record batches of one size, in the order of the files and of their rows."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.columns import check_text, did_you_mean, fields_of, is_text, plain
from airflow_provider_sms.recipients.file_format import SEPARATOR, EmptyFileError
from airflow_provider_sms.recipients.memory import check_names

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from airflow_provider_sms.recipients.file_format import FileFormat
    from airflow_provider_sms.recipients.paths import DataFile


log = logging.getLogger(__name__)

_HEADERS_AT_ONCE = 16
"""Headers that are read from an object store at the same time, since each takes the time of a request."""


@dataclass(frozen=True, slots=True)
class _TableFile:
    """One file of the table, with the columns of its header and of its path."""

    data: DataFile
    schema: pa.Schema
    """All columns, those of the path included."""
    constants: dict[str, pa.Scalar]
    """The columns that the path names, with their values."""


class FileSource:
    """Files of one table and one format, in the order given.

    :param file_format: the format of all files.
    :param files: their headers are read here, their rows by :meth:`batches`.
    :param description: the name of the source in a log.
    :raises SourceError: names a file that is not of the format, or whose columns do not match the other files.
    """

    def __init__(self, file_format: FileFormat, files: Sequence[DataFile], description: str) -> None:
        self._format = file_format
        self._description = description
        self._files = _with_columns(*_with_headers(files, _read_schemas(file_format, files)))
        self.schema: pa.Schema = _unify(self._files)

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; each call starts anew, independently of others.

        :param columns: the columns to keep; of Parquet only these are read. None means all.
        :param batch_size: rows in each batch but the last, which may have fewer, however the files divide the rows.
        :raises SourceError: a file cannot be read to its end, or lacks a column that others have.
        """
        schema = fields_of(self.schema, columns)
        with closing(self._batches(schema, batch_size)) as batches:
            yield from rebatch(batches, batch_size)

    def _batches(self, schema: pa.Schema, batch_size: int) -> Generator[pa.RecordBatch, None, None]:
        for file in self._files:
            for name in schema.names:
                if name not in file.schema.names:
                    meant = did_you_mean(name, file.schema.names)
                    raise SourceError(f"{file.data.name}: has no column {name!r}, unlike other files{meant}")
            names = [name for name in schema.names if name not in file.constants]
            with closing(self._format.read_rows(file.data, names, batch_size)) as batches:
                for batch in batches:
                    yield _in_schema(batch, file, schema)

    def describe(self) -> str:
        """Return a description of the files that a log may show."""
        return self._description

    def close(self) -> None:
        """Do nothing: each reading closes its files."""


def _read_schemas(file_format: FileFormat, files: Sequence[DataFile]) -> list[pa.Schema | EmptyFileError]:
    def read_schema(file: DataFile) -> pa.Schema | EmptyFileError:
        try:
            return file_format.read_schema(file)
        except EmptyFileError as error:
            return error

    if not all(getattr(file.filesystem, "async_impl", False) for file in files):
        # Others, such as FTP, may have one connection that cannot be shared.
        return list(map(read_schema, files))
    with ThreadPoolExecutor(min(_HEADERS_AT_ONCE, len(files))) as pool:
        return list(pool.map(read_schema, files))


def _with_headers(
    files: Sequence[DataFile], found: Sequence[pa.Schema | EmptyFileError]
) -> tuple[list[DataFile], list[pa.Schema]]:
    """Leave out empty files, as writers of many parts leave them; log these, and separators that were not expected.

    :raises EmptyFileError: all files are empty.
    """
    headers = [(file, each) for file, each in zip(files, found, strict=True) if isinstance(each, pa.Schema)]
    empty = [each for each in found if isinstance(each, EmptyFileError)]
    if not headers:
        raise empty[0]
    if empty:
        log.warning("%d of %d files hold no rows. The first: %s", len(empty), len(files), empty[0])
    others = [(file.name, each.metadata[SEPARATOR].decode()) for file, each in headers if each.metadata]
    if others:
        more = f", as in others of the {len(files)} files" if len(others) > 1 else ""
        log.info("%s: the columns are separated by %r%s", *others[0], more)
    return [file for file, _ in headers], [each.remove_metadata() for _, each in headers]


def _with_columns(files: Sequence[DataFile], stored: Sequence[pa.Schema]) -> list[_TableFile]:
    kinds = _partition_kinds(files)
    known: dict[pa.Schema, pa.Schema] = {}  # one schema for all files that are alike: they may be many, and wide
    table_files = []
    for file, own, values in zip(files, stored, partition_columns(files), strict=True):
        check_names(own.names, file.name)
        constants = {
            name: pa.scalar(value, kinds[name])
            for name, value in values.items()
            if name not in own.names  # a column in the file itself precedes one of its path
        }
        given = [pa.field(name, constant.type) for name, constant in constants.items()]
        schema = pa.schema([*own, *given]) if given else own
        table_files.append(_TableFile(file, known.setdefault(schema, schema), constants))
    return table_files


def partition_columns(files: Sequence[DataFile]) -> list[dict[str, int | str | None]]:
    """Return the columns that the path of each file names, with their values."""
    kinds = _partition_kinds(files)
    return [
        {
            name: int(text) if text is not None and pa.types.is_integer(kinds[name]) else text
            for name, text in file.partitions.items()
        }
        for file in files
    ]


def _partition_kinds(files: Sequence[DataFile]) -> dict[str, pa.DataType]:
    """Return the types of the columns that the paths name: integers where all their values are, else text."""
    values: dict[str, list[str]] = {}
    for file in files:
        for name, value in file.partitions.items():
            values.setdefault(name, []).extend([] if value is None else [value])
    # A leading zero marks a code, not a count.
    return {
        name: pa.int64() if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", value) for value in found) else pa.string()
        for name, found in values.items()
    }


def _unify(files: Sequence[_TableFile]) -> pa.Schema:
    """Return the columns of all files together; a type may widen, but not turn into another.

    :raises SourceError: names the first file and column that do not fit the files before.
    """
    first: dict[pa.Schema, _TableFile] = {}
    for file in files:
        first.setdefault(file.schema, file)
    schema = files[0].schema
    for file in first.values():
        for field in file.schema:
            known = schema.field(field.name) if field.name in schema.names else field
            try:
                if _would_change(known.type, field.type):
                    raise pa.ArrowInvalid
                pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="permissive")
            except pa.ArrowException:
                name = mask_numbers_in(repr(field.name))
                raise SourceError(
                    f"{file.data.name}: column {name} is of type {field.type}, but of type {known.type} in "
                    f"{files[0].data.name} or another file before it; write all files with one type"
                ) from None
        schema = pa.unify_schemas([schema, file.schema], promote_options="permissive")
    return schema


def _would_change(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether Arrow's common type of two could change values, as from decimals to floats, or text to bytes."""
    types = pa.types
    return one != other and any(
        (types.is_floating(a) and types.is_decimal(b))
        or (types.is_float16(a) and not types.is_null(b))
        or (is_text(a) and not types.is_null(b))
        for a, b in ((one, other), (other, one))
    )


def _in_schema(batch: pa.RecordBatch, file: _TableFile, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the rows of one file to the types of all files."""
    columns = []
    for field in schema:
        if field.name in file.constants:
            column = pa.repeat(file.constants[field.name], batch.num_rows)
        else:
            column = plain(batch.column(batch.schema.get_field_index(field.name)))
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowException:
            name = mask_numbers_in(repr(field.name))
            raise SourceError(
                f"{file.data.name}: column {name} has values of type {column.type} that do not fit the type "
                f"{field.type} of the other files; write all files with one type"
            ) from None
    converted = pa.RecordBatch.from_arrays(columns, schema=schema)
    check_text(converted, file.data.name)
    return converted


def rebatch(batches: Iterable[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, in batches of one size.

    :param batches: of one schema, of any size.
    :param batch_size: rows in each batch but the last, which may have fewer.
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
                yield _concat(held)
                held, rows = [], 0
    if held:
        yield _concat(held)


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch
