"""Parquet files of a few rows, and sources read whole."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sms.recipients.sources import open_source


def write(path, table=None, /, **columns):
    """Write a Parquet file, its directories too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if table is not None else pa.table(columns), path)
    return path


def read(source, columns=None):
    """Read a whole source as columns of Python values."""
    return pa.Table.from_batches(open_source(source).batches(columns)).to_pydict()
