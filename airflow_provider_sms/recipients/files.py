"""Files of one format that together form one table, in the order of the files and of their rows.

Parquet, Arrow's file format, which is Feather, and newline-delimited JSON; CSV is in a module of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.batches import BATCH_ROWS, Source, batch_without_rows
from airflow_provider_sms.recipients.columns import stored_names
from airflow_provider_sms.recipients.paths import safe_cause

if TYPE_CHECKING:
    from collections.abc import Generator

    from airflow_provider_sms.recipients.paths import DataFile

log = logging.getLogger(__name__)

# Each column is read in steps of so many bytes, since a row group may be the whole file; in an object store a step is a
# request. Nothing is read ahead (pre_buffer): Arrow would keep it until the end of the file.
_LOCAL_STEP = 1 << 20
_REMOTE_STEP = 16 << 20
_LONGEST = 1 << 20
"""The most bytes of a line, so that a file without line breaks is found."""

Table = tuple[pa.Schema, Callable[[Sequence[str]], Iterator[pa.RecordBatch]]]
"""The columns of an open file, none where it is empty, and a function that yields its rows in order: with the named
columns at least, and in memory that does not grow with the file."""


def open_files(
    opened_table: Callable[[DataFile], AbstractContextManager[Table]], files: Sequence[DataFile], description: str
) -> Source:
    """Return the source of files of one format, each of which is opened once, when the one before has been read."""

    def read(columns: Sequence[str] | None) -> Generator[pa.RecordBatch, None, None]:
        empty = 0
        for file in files:
            source.part = file.name
            with opened_table(file) as (schema, rows):
                if not schema.names:  # writers of many parts leave empty files
                    empty += 1
                    continue
                yield batch_without_rows(schema)
                yield from rows(stored_names(schema, columns))
        if empty == len(files):
            raise SourceError(f"{files[0].name}: is empty; the first line must hold the names of the columns")
        if empty:
            log.warning("%d of %d files of %s hold no rows", empty, len(files), description)

    source = Source(description, read)
    return source


@contextmanager
def opened(file: DataFile) -> Iterator[pa.NativeFile]:
    """Open a file; any error inside the ``with`` becomes one that names it."""
    try:
        if isinstance(file.filesystem, LocalFileSystem):
            with pa.OSFile(file.path) as content:
                yield content
        else:
            with file.filesystem.open(file.path, "rb") as stream, pa.PythonFile(stream, "r") as content:
                yield content
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{file.name}: there is no such file") from None
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and error.errno is None):
            # Arrow's words may quote values.
            hint = "" if file.ending else "; a name without an ending is taken for Parquet"
            words = f"{file.name}: is not a valid {file.format} file, or is damaged or cut short{hint}"
            raise SourceError(words) from None
        raise SourceError(f"{file.name}: cannot be read: {type(error).__name__}") from safe_cause(error, file.path)


@contextmanager
def opened_text(file: DataFile) -> Iterator[BufferedReader]:
    """Open a text file, decompressed as its name says; errors are those of :func:`opened`."""
    with opened(file) as stored:
        yield BufferedReader(stored if file.codec is None else pa.CompressedInputStream(stored, file.codec))


@contextmanager
def opened_parquet(file: DataFile) -> Iterator[Table]:
    """Open a Parquet file."""
    # Times of 96 bits, as by Spark and Hive: as nanoseconds the end of the year 9999 would be another day.
    how: dict[str, Any] = {"pre_buffer": False, "coerce_int96_timestamp_unit": "us"}
    with opened(file) as stored:
        step = _LOCAL_STEP if isinstance(stored, pa.OSFile) else _REMOTE_STEP
        with pq.ParquetFile(stored, buffer_size=step, **how) as parquet:
            # In this thread: several would each keep memory of their own, and reading is quick beside what follows.
            yield (
                parquet.schema_arrow,
                lambda names: parquet.iter_batches(BATCH_ROWS, columns=names, use_threads=False),
            )


@contextmanager
def opened_arrow(file: DataFile) -> Iterator[Table]:
    """Open an Arrow file at its first row."""
    with opened(file) as content, pa.ipc.open_file(content) as reader:
        yield reader.schema, lambda _: map(reader.get_batch, range(reader.num_record_batches))


def read_json_lines(files: Sequence[DataFile]) -> Iterator[dict[str, Any]]:
    """Yield the rows of files in order: each line is an object."""
    for file in files:
        with opened_text(file) as content:
            for number, line in enumerate(iter(lambda: content.readline(_LONGEST + 1), b""), 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip()
                if not text:
                    continue
                try:
                    row = orjson.loads(text) if len(text) <= _LONGEST else None
                except orjson.JSONDecodeError:
                    row = None  # the parser's words may quote the line
                if not isinstance(row, dict):
                    raise SourceError(
                        f"{file.name}: line {number} is not a JSON object; write one object a line, of up to "
                        f"{_LONGEST >> 20} MiB, in UTF-8. A file that is one JSON array is not read"
                    )
                yield row
