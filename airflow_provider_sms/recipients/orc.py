"""ORC files, read a stripe at a time: writers limit a stripe to 64 MB or less, unless configured otherwise."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from pyarrow import orc

from airflow_provider_sms.recipients.columns import plain_type
from airflow_provider_sms.recipients.file_format import FileFormat, source_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file) as stored:
        return pa.schema([pa.field(field.name, plain_type(field.type)) for field in stored.schema])


def _read_rows(file: DataFile, names: Sequence[str], batch_size: int) -> Generator[pa.RecordBatch, None, None]:
    with _opened(file) as stored:
        # Without a column, rows could not be counted.
        columns = list(names or stored.schema.names[:1])
        for number in range(stored.nstripes):
            stripe = stored.read_stripe(number, columns=columns)
            stripe.validate(full=True)
            for start in range(0, stripe.num_rows, batch_size):
                yield stripe.slice(start, batch_size)


ORC = FileFormat("ORC", _read_schema, _read_rows)


@contextmanager
def _opened(file: DataFile) -> Iterator[orc.ORCFile]:
    with source_errors(file, lambda _: "is not an ORC file, or is damaged or cut short"):
        if isinstance(file.filesystem, LocalFileSystem):
            yield orc.ORCFile(file.path)
        else:
            with file.open() as stream, pa.PythonFile(stream, "r") as source:
                yield orc.ORCFile(source)
