"""Recipients in Parquet files, read a batch at a time: what is held in memory does not grow with the files."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.messages.columns import check_text, field_of, is_text, plain, value_type
from airflow_provider_sms.messages.paths import DataFile, safe_cause
from airflow_provider_sms.messages.tables import check_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A column of a local row group is read in steps of so many bytes. Elsewhere it is read whole: a step is a request.
# Nothing is read ahead (pre_buffer), as what was read ahead is kept until the end of the file.
_LOCAL_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """One file and what its footer and its path say."""

    file: DataFile
    schema: pa.Schema
    """Its columns, with those that its path gives."""
    constants: dict[str, pa.Scalar]
    """The columns that its path gives."""
    num_rows: int


class ParquetSource:
    """Parquet files of one table, in the order given.

    :param files: the files; their footers are read at once, their rows only when they are asked for.
    :param description: what to call them in a log.
    :raises SourceError: names a file that is not Parquet, or whose columns do not go together with the others'.
    """

    def __init__(self, files: Sequence[DataFile], description: str) -> None:
        kinds = _partition_kinds(files)
        self._parts = [_read_footer(file, kinds) for file in files]
        self._description = description
        self.schema: pa.Schema = _unify(self._parts)
        self.num_rows: int | None = sum(part.num_rows for part in self._parts)

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Go through the rows in order; each call starts anew.

        :param columns: the columns that are needed; only these are read. None: all.
        :param batch_size: rows in a batch, at most. There are no empty batches.
        :raises SourceError: a file cannot be read to its end, or lacks a column that others have.
        """
        names = self.schema.names if columns is None else list(dict.fromkeys(columns))
        schema = pa.schema([field_of(self.schema, name, "columns") for name in names])
        for part in self._parts:
            yield from _read_rows(part, schema, batch_size)

    def describe(self) -> str:
        """Say which files they are."""
        return self._description


@contextmanager
def _opened(file: DataFile) -> Iterator[pq.ParquetFile]:
    """Open a file for reading; whatever fails inside of the ``with`` is said of this file.

    :raises SourceError: it is not there, not Parquet, damaged, or its storage fails.
    """
    try:
        if isinstance(file.filesystem, LocalFileSystem):
            with pq.ParquetFile(file.path, buffer_size=_LOCAL_BUFFER, pre_buffer=False) as parquet:
                yield parquet
        else:
            with file.filesystem.open(file.path, "rb") as stream, pq.ParquetFile(stream, pre_buffer=False) as parquet:
                yield parquet
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{file.name}: there is no such file") from None
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and error.errno is None):
            # Arrow's own words may quote values, so they are not passed on.
            raise SourceError(f"{file.name}: is not a Parquet file, or is damaged or cut short") from None
        raise SourceError(f"{file.name}: cannot be read: {type(error).__name__}") from safe_cause(error, file.path)


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


def _read_footer(file: DataFile, kinds: dict[str, pa.DataType]) -> _Part:
    with _opened(file) as parquet:
        fields = [pa.field(field.name, _plain_type(field.type)) for field in parquet.schema_arrow]
        num_rows = parquet.metadata.num_rows
    names = [field.name for field in fields]
    check_names(names, file.name)
    constants = {
        name: pa.scalar(int(value) if value is not None and pa.types.is_integer(kinds[name]) else value, kinds[name])
        for name, value in file.partitions.items()
        if name not in names  # a column in the file itself goes before one of its path
    }
    fields += [pa.field(name, constant.type) for name, constant in constants.items()]
    return _Part(file, pa.schema(fields), constants, num_rows)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    kind = value_type(kind)
    return pa.string() if is_text(kind) else kind


def _unify(parts: Sequence[_Part]) -> pa.Schema:
    """Find the columns of all files together; a type may widen, but not turn into another.

    :raises SourceError: names the first file and column that do not fit those before.
    """
    schema = parts[0].schema
    for part in parts[1:]:
        if part.schema.equals(schema):
            continue
        for field in part.schema:
            known = schema.field(field.name) if field.name in schema.names else field
            try:
                pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="permissive")
            except pa.ArrowException:
                raise SourceError(
                    f"{part.file.name}: column {field.name!r} is of type {field.type}, but of type {known.type} in "
                    f"{parts[0].file.name} or another file before it; write all files with one type"
                ) from None
        schema = pa.unify_schemas([schema, part.schema], promote_options="permissive")
    return schema


def _read_rows(part: _Part, schema: pa.Schema, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Read the rows of one file in the types of all files."""
    for name in schema.names:
        if name not in part.schema.names:
            raise SourceError(f"{part.file.name}: has no column {name!r}, unlike other files of the source")
    names = [name for name in schema.names if name not in part.constants]
    with _opened(part.file) as parquet:
        for batch in parquet.iter_batches(batch_size, columns=names):
            yield _in_schema(batch, part, schema)


def _in_schema(batch: pa.RecordBatch, part: _Part, schema: pa.Schema) -> pa.RecordBatch:
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
