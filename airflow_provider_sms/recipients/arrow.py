"""Arrow IPC files, Feather included: the file format and the stream format, one of the writer's batches at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sms.recipients.files import FileFormat, source_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile

MAGIC = b"ARROW1"
"""The first bytes of the file format; the stream format has none."""
_FEATHER_1 = b"FEA1"
_CONTINUES = b"\xff\xff\xff\xff"
"""The bytes before each message of a stream, but for streams of 2019 and before."""


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file) as (schema, _):
        return schema


def _read_rows(file: DataFile, _: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    with _opened(file) as (_, batches):
        for batch in batches:
            batch.validate(full=True)  # Arrow takes a file at its word, and would read beyond the end of a damaged one
            yield batch


ARROW = FileFormat("Arrow", _read_schema, _read_rows)


@contextmanager
def _opened(file: DataFile) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file at its first row."""
    beginning = b""

    def explain() -> str:
        if beginning.startswith(_FEATHER_1):
            return "is a Feather file of version 1, which is not supported; write it again, as version 2"
        return "is not an Arrow file, or is damaged or cut short"

    with source_errors(file, explain), _source(file) as source:
        beginning = source.read(len(MAGIC))
        source.seek(0)
        with (pa.ipc.open_file if beginning == MAGIC else pa.ipc.open_stream)(source) as reader:
            yield reader.schema, _batches(reader, source, beginning)


@contextmanager
def _source(file: DataFile) -> Iterator[Any]:
    if isinstance(file.filesystem, LocalFileSystem):
        with pa.OSFile(file.path) as source:
            yield source
    else:
        with file.open() as stream, pa.PythonFile(stream, "r") as source:
            yield source


def _batches(reader: Any, source: Any, beginning: bytes) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchReader):
        yield from reader
        _require_end(source, beginning)
        return
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _require_end(source: Any, beginning: bytes) -> None:
    """Refuse a stream without its end mark, or with anything after it: rows would be missing.

    The format allows a writer to leave the mark out, but a file that was cut between two batches looks the same.

    :param source: at the end of the last batch that was read.
    :param beginning: the first bytes of the source.
    """
    mark = b"\0\0\0\0"
    if beginning.startswith(_CONTINUES):
        mark = _CONTINUES + mark
    end = source.tell()
    source.seek(max(0, end - len(mark)))
    if source.read(len(mark)) != mark or end < source.size():
        raise pa.ArrowInvalid("no end mark, or more than one stream")
