"""Parquet files, read a step at a time, in memory that does not grow with their row groups."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.recipients.batches import BATCH_ROWS
from airflow_provider_sms.recipients.files import FileFormat, other_format, source_errors
from airflow_provider_sms.recipients.paths import READ

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile

# Each column is read in steps of so many bytes, since a row group may be the whole file; in an object store a step is a
# request. Nothing is read ahead (pre_buffer): Arrow would keep it until the end of the file.
_LOCAL_STEP = 1 << 20
_REMOTE_STEP = 16 << 20
_INT96_UNIT = "us"
"""The unit of times that are stored in 96 bits, as by Spark and Hive. In nanoseconds, which Arrow would read them in, a
time before 1677 or after 2262, such as the end of the year 9999, turns into another one without an error."""
_OTHER_NAMES = {
    r"\.json": "is JSON, which is read with one object a line: write it so, and name it .jsonl or .ndjson",
    r"\.txt": "is text; if it is a table, name it .csv (commas between the values) or .tsv (tabs)",
}
"""Patterns for the names of text files that are not read, and what to do about them."""


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file) as parquet:
        return parquet.schema_arrow


def _read_rows(file: DataFile, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    with _opened(file) as parquet:
        # In this thread: several would each keep memory of their own, and reading is quick beside what follows.
        yield from parquet.iter_batches(BATCH_ROWS, columns=names, use_threads=False)


PARQUET = FileFormat("Parquet", _read_schema, _read_rows)


@contextmanager
def _opened(file: DataFile) -> Iterator[pq.ParquetFile]:
    is_local = isinstance(file.filesystem, LocalFileSystem)
    how: dict[str, Any] = {"pre_buffer": False, "coerce_int96_timestamp_unit": _INT96_UNIT}
    with (
        source_errors(file, lambda: _explain(file)),
        pa.OSFile(file.path) if is_local else file.open() as stored,
        pq.ParquetFile(stored, buffer_size=_LOCAL_STEP if is_local else _REMOTE_STEP, **how) as parquet,
    ):
        yield parquet


def _explain(file: DataFile) -> str:
    if file.format is not None:
        return "is not a Parquet file, or is damaged or cut short"
    for pattern, words in _OTHER_NAMES.items():
        if re.search(pattern + r"(\.(gz|bz2|zst))?$", file.name.lower()):
            return f"{words}. Formats that are read: {READ}"
    with file.open() as stream:
        beginning = stream.read(8)
    if (other := other_format(beginning)) and not beginning.startswith(b"PAR1"):
        return f"is {other}. Formats that are read: {READ}"
    return (
        "is taken for Parquet, since its name tells no format, but is not a Parquet file, or is damaged or cut short. "
        f"Convert it, and name it by its format. Formats that are read: {READ}"
    )
