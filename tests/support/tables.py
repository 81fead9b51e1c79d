"""Parquet files of a few rows, and sources read whole."""

from __future__ import annotations

import io

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sms.recipients.columns import plain
from airflow_provider_sms.recipients.sources import open_source


def write(path, table=None, /, **columns):
    """Write a Parquet file, its directories too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if table is not None else pa.table(columns), path)
    return path


def read(source, columns=None):
    """Read a whole source as columns of Python values; a column that a batch lacks is null there."""
    found, rows = {}, 0
    for batch in open_source(source).batches(columns):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            found.setdefault(name, [None] * rows).extend(plain(column).to_pylist())
        rows += len(batch)
        for values in found.values():
            values.extend([None] * (rows - len(values)))
    return found


class Storage:
    """The local filesystem as one that is not local, which keeps the files that it opened."""

    def __init__(self):
        self.opened = []

    def open(self, path, mode):
        """Open a file."""
        self.opened.append(_Counted(path, mode))
        return self.opened[-1]

    def __getattr__(self, name):
        return getattr(fsspec.filesystem("file"), name)


class _Counted(io.FileIO):
    """A file that counts the bytes that were read of it."""

    count = 0

    def read(self, *args):
        data = super().read(*args)
        self.count += len(data)
        return data


def first_schema(source):
    """Return the columns of a source, as its first check sees them."""
    seen = []
    list(open_source(source).batches(check=seen.append))
    return seen[0]
