"""Files that hold columns: Parquet, and Arrow's file format, which is Feather, too."""

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


@contextmanager
def opened_parquet(file: DataFile) -> Iterator[Table]:
    """Open a Parquet file."""
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
    """Open an Arrow file at its first row."""
    with opened(file) as content, pa.ipc.open_file(content) as reader:
        yield reader.schema, lambda _: map(reader.get_batch, range(reader.num_record_batches))
