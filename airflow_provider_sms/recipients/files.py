"""Files of one format that together form one table, in the order of the files and of their rows."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.recipients.batches import BATCH_ROWS, Source, check_names
from airflow_provider_sms.recipients.columns import fields_of, strings
from airflow_provider_sms.recipients.file_format import SEPARATOR, EmptyFileError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from airflow_provider_sms.recipients.file_format import FileFormat
    from airflow_provider_sms.recipients.paths import DataFile


log = logging.getLogger(__name__)

_HEADERS_AT_ONCE = 16
"""Headers that are read from an object store at the same time, since each takes the time of a request."""


def open_files(file_format: FileFormat, files: Sequence[DataFile], description: str) -> Source:
    """Return the source of files, whose headers are read here.

    :param file_format: the format of all files.
    :param description: the name of the source in a log.
    :raises SourceError: names a file that is not of the format.
    """
    headers = _with_headers(files, _read_schemas(file_format, files))
    # The columns that the path of a file names: a column in the file itself precedes one of its path.
    named = [{name: value for name, value in file.partitions.items() if name not in own.names} for file, own in headers]
    schemas = [
        pa.schema([*own, *(pa.field(name, pa.string()) for name in constants)])
        for (_, own), constants in zip(headers, named, strict=True)
    ]

    def read(columns: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        for (file, _), schema, constants in zip(headers, schemas, named, strict=True):
            wanted = fields_of(schema, columns).names
            stored = [name for name in wanted if name not in constants]
            with closing(file_format.read_rows(file, stored, BATCH_ROWS)) as batches:
                for batch in batches:
                    yield pa.RecordBatch.from_arrays(
                        [
                            strings([constants[name]] * batch.num_rows) if name in constants else batch.column(name)
                            for name in wanted
                        ],
                        wanted,
                    )

    return Source(description, read, [(file.name, schema) for (file, _), schema in zip(headers, schemas, strict=True)])


def _read_schemas(file_format: FileFormat, files: Sequence[DataFile]) -> list[pa.Schema | EmptyFileError]:
    def read_schema(file: DataFile) -> pa.Schema | EmptyFileError:
        try:
            schema = file_format.read_schema(file)
        except EmptyFileError as error:
            return error
        check_names(schema.names, file.name)
        return schema

    if not all(getattr(file.filesystem, "async_impl", False) for file in files):
        # Others, such as FTP, may have one connection that cannot be shared.
        return list(map(read_schema, files))
    with ThreadPoolExecutor(min(_HEADERS_AT_ONCE, len(files))) as pool:
        return list(pool.map(read_schema, files))


def _with_headers(
    files: Sequence[DataFile], found: Sequence[pa.Schema | EmptyFileError]
) -> list[tuple[DataFile, pa.Schema]]:
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
    return headers
