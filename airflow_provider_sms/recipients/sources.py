"""Sources: recipients in any form → Arrow record batches, read as often as needed in the same order."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.csv import CSV
from airflow_provider_sms.recipients.files import FileSource
from airflow_provider_sms.recipients.memory import from_dataframe, from_rows, from_table
from airflow_provider_sms.recipients.parquet import PARQUET
from airflow_provider_sms.recipients.paths import find_files, is_path, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_SHOWN = 3


class Source(Protocol):
    """Rows of recipients."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; each call starts anew.

        :param columns: the columns to read; None: all.
        :param batch_size: rows in a batch, at most. There are no empty batches.
        """

    def describe(self) -> str:
        """Return what the source is, as a log may show it."""


def open_source(source: Any) -> Source:
    """Open recipients in any form.

    :param source: path or URI of a Parquet or CSV file or of a directory with such files, at any depth, where files and
        directories that begin with ``_`` or ``.`` are passed over; a glob; an object with ``fs`` and ``path`` such as
        an ``ObjectStoragePath``; a list of these; a pandas DataFrame; a pyarrow Table or RecordBatch; a list of dicts.
        A file is CSV where its name ends so (``.csv``, ``.tsv``, and with ``.gz``, ``.bz2``, ``.zst``), else Parquet.
    :raises SourceError: there is nothing to read, the files are not all of one format, or the source is none of these.
    """
    pandas = sys.modules.get("pandas")  # a DataFrame cannot be where pandas has not been imported
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return from_dataframe(source)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return from_table(source)
    if is_path(source):
        return _open_paths([source])
    if isinstance(source, (list, tuple)):
        if all(isinstance(row, Mapping) for row in source):
            return from_rows(source)
        if all(is_path(path) for path in source):
            return _open_paths(source)
        kinds = ", ".join(sorted({type(element).__name__ for element in source}))
        raise SourceError(f"a list of recipients holds either paths or dicts, not {kinds}")
    raise SourceError(
        f"recipients cannot be read from {type(source).__name__}: pass a path or a URI of Parquet or CSV files, "
        "a DataFrame, a pyarrow Table, or a list of dicts"
    )


def _open_paths(paths: Sequence[Any]) -> Source:
    files = [file for path in paths for file in find_files(path)]
    of_csv = next((file for file in files if file.is_csv), None)
    of_parquet = next((file for file in files if not file.is_csv), None)
    if of_csv is not None and of_parquet is not None:
        raise SourceError(
            f"{of_csv.name} is CSV, and {of_parquet.name} is taken for Parquet: one source is of one format; "
            "choose with a glob, such as *.csv or **/*.parquet"
        )
    file_format = PARQUET if of_csv is None else CSV
    names = ", ".join(without_secrets(path) for path in paths[:_MOST_SHOWN])
    more = f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else ""
    kind = f"{file_format.name} {'file' if len(files) == 1 else 'files'}"
    return FileSource(file_format, files, f"{names}{more} ({len(files)} {kind})")
