"""Arrow IPC files, Feather included: the file format and the stream format, one of the writer's batches at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.recipients.files import Table, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.recipients.paths import DataFile

_MAGIC = b"ARROW1"
"""The first bytes of the file format; the stream format has none."""
_END = b"\xff\xff\xff\xff\0\0\0\0"
"""The last bytes of a stream. The format allows a writer to leave them out, but a file that was cut between two batches
looks the same."""


@contextmanager
def opened_arrow(file: DataFile) -> Iterator[Table]:
    """Open an Arrow file at its first row.

    :raises SourceError: it is of another format, damaged or cannot be read.
    """
    with opened(file) as content:
        is_file = content.read(len(_MAGIC)) == _MAGIC
        content.seek(0)
        with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(content) as reader:
            yield reader.schema, lambda _: _of_file(reader) if is_file else _of_stream(reader, content)


def _of_file(reader: pa.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _of_stream(reader: pa.RecordBatchReader, content: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    yield from reader
    end = content.tell()
    content.seek(max(0, end - len(_END)))
    if content.read(len(_END)) != _END or end < content.size():
        raise pa.ArrowInvalid("no end mark, or more than one stream")  # rows would be missing
