"""Files that hold columns: Parquet, and Arrow IPC, which is Feather, too."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sms.recipients.batches import BATCH_ROWS
from airflow_provider_sms.recipients.files import Table, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.recipients.paths import DataFile

# Each column is read in steps of so many bytes, since a row group may be the whole file; in an object store a step is a
# request. Nothing is read ahead (pre_buffer): Arrow would keep it until the end of the file.
_LOCAL_STEP = 1 << 20
_REMOTE_STEP = 16 << 20
_INT96_UNIT = "us"
"""The unit of times that are stored in 96 bits, as by Spark and Hive. In nanoseconds, which Arrow would read them in, a
time before 1677 or after 2262, such as the end of the year 9999, turns into another one without an error."""
_MAGIC = b"ARROW1"
"""The first bytes of the file format; the stream format has none."""
_END = b"\xff\xff\xff\xff\0\0\0\0"
"""The last bytes of a stream. The format allows a writer to leave them out, but a file that was cut between two batches
looks the same."""


@contextmanager
def opened_parquet(file: DataFile) -> Iterator[Table]:
    """Open a Parquet file.

    :raises SourceError: it is of another format, damaged or cannot be read.
    """
    how: dict[str, Any] = {"pre_buffer": False, "coerce_int96_timestamp_unit": _INT96_UNIT}
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
