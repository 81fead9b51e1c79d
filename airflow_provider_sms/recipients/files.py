"""Files of one format that together form one table, in the order of the files and of their rows."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.batches import Source, check_names
from airflow_provider_sms.recipients.columns import fields_of
from airflow_provider_sms.recipients.paths import DataFile, safe_cause

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

log = logging.getLogger(__name__)

_HEADERS_AT_ONCE = 16
"""Headers that are read from an object store at the same time, since each takes the time of a request."""


class FileFormat(NamedTuple):
    """The functions that read files of one format."""

    name: str
    """The name of the format in a log."""
    read_schema: Callable[[DataFile], pa.Schema]
    """Returns the columns of a file; none of a file that is empty."""
    read_rows: Callable[[DataFile, Sequence[str]], Generator[pa.RecordBatch, None, None]]
    """Yields the rows in order, with the named columns at least, in memory that does not grow with the file, and closes
    the file when it is closed."""


def open_files(file_format: FileFormat, files: Sequence[DataFile], description: str) -> Source:
    """Return the source of files, whose headers are read here.

    :param file_format: the format of all files.
    :param description: the name of the source in a log.
    :raises SourceError: names a file that is not of the format, or says that all are empty.
    """
    headers = _with_headers(list(zip(files, _read_schemas(file_format, files), strict=True)))

    def read(columns: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        for file, schema in headers:
            with closing(file_format.read_rows(file, fields_of(schema, columns).names)) as batches:
                yield from batches

    return Source(description, read, [(file.name, schema) for file, schema in headers])


def _read_schemas(file_format: FileFormat, files: Sequence[DataFile]) -> list[pa.Schema]:
    def read_schema(file: DataFile) -> pa.Schema:
        schema = file_format.read_schema(file)
        check_names(schema.names, file.name)
        return schema

    if not all(getattr(file.filesystem, "async_impl", False) for file in files):
        # Others, such as FTP, may have one connection that cannot be shared.
        return list(map(read_schema, files))
    with ThreadPoolExecutor(min(_HEADERS_AT_ONCE, len(files))) as pool:
        return list(pool.map(read_schema, files))


def _with_headers(files: list[tuple[DataFile, pa.Schema]]) -> list[tuple[DataFile, pa.Schema]]:
    """Leave out empty files, as writers of many parts leave them.

    :raises SourceError: all files are empty.
    """
    empty = [file.name for file, schema in files if not schema.names]
    if len(empty) == len(files):
        raise SourceError(f"{empty[0]}: is empty; the first line must hold the names of the columns")
    if empty:
        log.warning("%d of %d files hold no rows. The first: %s", len(empty), len(files), empty[0])
    return [(file, schema) for file, schema in files if schema.names]


UTF_16 = "UTF-16 text; write it as UTF-8"
_BEGINNINGS = {
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
    b"PAR1": "a Parquet file; name it .parquet",
    b"ARROW1": "an Arrow or Feather file; name it .arrow",
    b"ORC": "an ORC file; write it as Parquet",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV, and name it .csv",
    b"\xd0\xcf\x11\xe0": "an old workbook or document; save it as CSV, and name it .csv",
    b"\x1f\x8b": "compressed with gzip; name it .csv.gz",
}
"""The first bytes of files, and what to do where another format was expected."""


def other_format(beginning: bytes) -> str | None:
    """Return words for the format that the first bytes of a file tell; None where they tell none."""
    return next((words for mark, words in _BEGINNINGS.items() if beginning.startswith(mark)), None)


@contextmanager
def source_errors(file: DataFile, explain: Callable[[], str]) -> Iterator[None]:
    """Raise a :class:`SourceError` that names the file for any error inside the ``with``.

    :param explain: returns the meaning of an Arrow error, whose own words may quote values and so are not passed on.
    :raises SourceError: the file is missing, of another format or damaged, or its storage fails.
    """
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{file.name}: there is no such file") from None
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and error.errno is None):
            raise SourceError(f"{file.name}: {explain()}") from None
        raise SourceError(f"{file.name}: cannot be read: {type(error).__name__}") from safe_cause(error, file.path)


@contextmanager
def opened_text(file: DataFile) -> Iterator[BufferedReader]:
    """Open a text file, decompressed as its name says.

    :raises ArrowInvalid: a compressed file has no byte: even no text takes some, and Arrow reads it as no text.
    """
    with file.open() as stream, pa.PythonFile(stream, "r") as stored:
        if file.codec is None:
            yield BufferedReader(stored)
            return
        if not stored.read(1):
            raise pa.ArrowInvalid("no byte")
        stored.seek(0)
        with pa.CompressedInputStream(stored, file.codec) as content:
            yield BufferedReader(content)
