"""Parquet files, read a step at a time, in memory that does not grow with their row groups."""

from __future__ import annotations

import base64
import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.recipients.batches import BATCH_ROWS
from airflow_provider_sms.recipients.columns import value_type
from airflow_provider_sms.recipients.files import FileFormat, source_errors
from airflow_provider_sms.recipients.paths import READ

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile

# Each column is read in steps of so many bytes, since a row group may be the whole file; in an object store a step is a
# request. Nothing is read ahead (pre_buffer): Arrow would keep it until the end of the file.
_LOCAL_STEP = 1 << 20
_REMOTE_STEP = 16 << 20
_ARROW_SCHEMA = b"ARROW:schema"
_INT96_UNIT = "us"
"""The unit of times that are stored in 96 bits, as by Spark and Hive. In nanoseconds, which Arrow would read them in, a
time before 1677 or after 2262, such as the end of the year 9999, turns into another one without an error."""


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
    with source_errors(file, lambda: _explain(file)):
        if isinstance(file.filesystem, LocalFileSystem):
            with _parquet_file(file.path, _LOCAL_STEP) as parquet:
                yield parquet
        else:
            with file.open() as stream, _parquet_file(stream, _REMOTE_STEP) as parquet:
                yield parquet


_OTHERS = {
    b"ARROW1": "is an Arrow or Feather file; name it .arrow",
    b"ORC": f"is an ORC file; write it as Parquet. Formats that are read: {READ}",
    b"PK\x03\x04": f"is a workbook or a zip archive; save it as CSV, and name it .csv. Formats that are read: {READ}",
    b"\xd0\xcf\x11\xe0": (
        f"is an old workbook or document; save it as CSV, and name it .csv. Formats that are read: {READ}"
    ),
}
"""The first bytes of files that are not Parquet, and what to do about them."""
_OTHER_NAMES = {
    r"\.json": "is JSON, which is read with one object a line: write it so, and name it .jsonl or .ndjson",
    r"\.txt": "is text; if it is a table, name it .csv (commas between the values) or .tsv (tabs)",
}
"""Patterns for the names of text files that are not read, and what to do about them."""


def _explain(file: DataFile) -> str:
    if file.format is not None:
        return "is not a Parquet file, or is damaged or cut short"
    with file.open() as stream:
        beginning = stream.read(max(map(len, _OTHERS)))
    for mark, words in _OTHERS.items():
        if beginning.startswith(mark):
            return words
    for pattern, words in _OTHER_NAMES.items():
        if re.search(pattern + r"(\.(gz|bz2|zst))?$", file.name.lower()):
            return f"{words}. Formats that are read: {READ}"
    return (
        "is taken for Parquet, since its name tells no format, but is not a Parquet file, or is damaged or cut short. "
        f"Convert it, and name it by its format. Formats that are read: {READ}"
    )


@contextmanager
def _parquet_file(where: Any, step: int) -> Iterator[pq.ParquetFile]:
    how: dict[str, Any] = {"buffer_size": step, "pre_buffer": False, "coerce_int96_timestamp_unit": _INT96_UNIT}
    with pq.ParquetFile(where, **how) as parquet:
        if not any(pa.types.is_dictionary(kind) for kind in parquet.schema_arrow.types):
            yield parquet
            return
        metadata = _without_dictionaries(parquet.metadata)
        with pq.ParquetFile(where, metadata=metadata, **how) as without:
            yield without


def _without_dictionaries(metadata: pq.FileMetaData) -> pq.FileMetaData:
    """Return metadata with which Arrow reads dictionary columns as plain ones.

    Arrow reads the dictionary columns that its writer noted in the footer a whole row group at a time, and every batch
    then carries the whole dictionary. No option turns that off, so the note is replaced by one of the same length.
    """
    note = metadata.metadata[_ARROW_SCHEMA]
    noted = base64.b64decode(note)
    schema = pa.ipc.read_schema(pa.BufferReader(noted))
    plain = pa.schema([field.with_type(value_type(field.type)) for field in schema], schema.metadata)
    replaced = base64.b64encode(plain.serialize().to_pybytes().ljust(len(noted), b"\0"))
    if len(replaced) != len(note):
        return metadata
    footer = io.BytesIO()
    metadata.write_metadata_file(footer)
    return pq.read_metadata(io.BytesIO(footer.getvalue().replace(note, replaced)))
