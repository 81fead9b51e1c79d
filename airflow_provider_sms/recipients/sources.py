"""Sources: recipients in any form → Arrow record batches, read as often as needed in the same order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.arrow import ARROW
from airflow_provider_sms.recipients.csv import CSV
from airflow_provider_sms.recipients.files import FileSource
from airflow_provider_sms.recipients.forms import explain_other, is_dataframe, is_stream
from airflow_provider_sms.recipients.json_lines import read_json_lines
from airflow_provider_sms.recipients.memory import from_columns, from_dataframe, from_rows, from_table
from airflow_provider_sms.recipients.number_lists import (
    could_be_number,
    first_other,
    holds_several,
    is_date,
    is_number_list,
)
from airflow_provider_sms.recipients.orc import ORC
from airflow_provider_sms.recipients.parquet import PARQUET
from airflow_provider_sms.recipients.paths import JSON_LINES, find_files, is_path, without_secrets
from airflow_provider_sms.recipients.spool import spool
from airflow_provider_sms.recipients.streams import Pieces, batches_of_rows, pieces_of_rows, pieces_of_stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sms.recipients.paths import DataFile

_FORMATS = {file_format.name: file_format for file_format in (ARROW, CSV, ORC, PARQUET)}
_MOST_SHOWN = 3


class Source(Protocol):
    """Rows of recipients."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; each call starts anew.

        :param columns: the columns to read; None means all.
        :param batch_size: rows in a batch, at most. There are no empty batches.
        """

    def describe(self) -> str:
        """Return a description of the source that a log may show."""

    def close(self) -> None:
        """Free the source's resources, such as room on disk. Nothing can be read afterwards."""


def open_source(source: Any, *, argument: str = "source", column: str = "destination") -> Source:
    """Open recipients in any form. Close the source to free its room on disk.

    JSON lines, and sources that can be read only once, are read here, into a nameless file in the folder for temporary
    files.

    :param source: path or URI of a file or of a directory with such files, at any depth, where files and directories
        whose names begin with ``_`` or ``.`` are passed over; a glob; an object with ``fs`` and ``path`` such as an
        ``ObjectStoragePath``; a list of these; a pandas DataFrame; a pyarrow Table or RecordBatch; an object with
        Arrow's C stream interface; a list, or an iterator, of dicts; a dict of columns; a phone number, or a list of
        them; or :class:`Pieces`.
        The name of a file tells its format: CSV, JSON lines, Arrow or ORC; every other file is taken for Parquet.
    :param argument: the argument that gives the source, for an error.
    :param column: the name of the column that a list of phone numbers becomes.
    :raises SourceError: there is nothing to read, the files are not all of one format, or the source is none of these.
    :raises SourceUnavailableError: the folder for temporary files has no room; a retry may succeed.
    """
    with _naming(argument):
        return _Named(argument, _opened(source, column))


class _Named:
    """A source whose errors begin with the argument that gave it."""

    def __init__(self, argument: str, source: Source) -> None:
        self._argument = argument
        self._source = source

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    def batches(self, columns: Sequence[str] | None = None, batch_size: int = 10_000) -> Iterator[pa.RecordBatch]:
        with _naming(self._argument):
            yield from self._source.batches(columns, batch_size)

    def describe(self) -> str:
        return self._source.describe()

    def close(self) -> None:
        self._source.close()


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    try:
        yield
    except SourceError as error:
        error.args = (f"{argument}: {error}",)
        raise


def _opened(source: Any, column: str) -> Source:
    if isinstance(source, str) and could_be_number(source):
        source = [source]
    if is_dataframe(source):
        return from_dataframe(source)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return from_table(pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source)
    pieces = _pieces(source)
    if pieces is not None:
        return spool(*pieces)
    if is_path(source):
        return _open_paths([source])
    if isinstance(source, Mapping):
        return from_columns(source)
    if isinstance(source, (list, tuple)):
        return _open_list(source, column)
    raise SourceError(explain_other(source))


def _pieces(source: Any) -> Pieces | None:
    """Return the rows of a source that can be read only once; None for any other."""
    if isinstance(source, Pieces):
        return source
    if is_stream(source):
        return pieces_of_stream(source)
    # An open file of fsspec is an iterator too, but has a path.
    return pieces_of_rows(source) if isinstance(source, Iterator) and not is_path(source) else None


def _open_list(source: list[Any] | tuple[Any, ...], column: str) -> Source:
    if all(isinstance(row, Mapping) for row in source):
        return from_rows(source)
    if is_number_list(source):
        _require_numbers(source)
        return from_rows([{column: number} for number in source])
    if (other := first_other(source)) is not None:
        if isinstance(source[other], str) and "{{" in source[other]:
            raise SourceError(
                f"element {other} of {len(source)}, counted from 0, is the template "
                f"{mask_numbers_in(source[other])!r}, which was not rendered: a list with phone numbers is hidden "
                "from Airflow, so no template in it is rendered. Take the template out of the list, or let a function "
                "of @task.bulk_sms return the list"
            )
        raise SourceError(
            f"a list of phone numbers may hold nothing else, and element {other} of {len(source)} is not one. "
            "Elements count from 0"
        )
    if all(is_path(path) for path in source):
        return _open_paths(source)
    kinds = ", ".join(sorted({type(element).__name__ for element in source}))
    raise SourceError(f"a list of recipients must hold one kind of element: paths, dicts or numbers, not {kinds}")


def _require_numbers(source: Sequence[Any]) -> None:
    """Refuse an element that would be read as a number other than was meant, or that was meant as a path.

    :raises SourceError: gives the position, and no value.
    """
    for position, item in enumerate(source):
        if not isinstance(item, str):
            continue
        which = f"element {position} of {len(source)}, counted from 0,"
        if holds_several(item):
            raise SourceError(f"{which} holds several phone numbers: pass a list with one number in each element")
        if is_date(item):
            raise SourceError(f"a list of phone numbers holds nothing else, and {which} is a date")
        if os.path.lexists(item):
            raise SourceError(
                f"{which} is a phone number, and a file or a folder has this name, too. Begin the path with ./, or run "
                "the task in another folder"
            )


def _open_paths(paths: Sequence[Any]) -> Source:
    files = [file for path in paths for file in find_files(path)]
    first: dict[str, DataFile] = {}
    for file in files:
        first.setdefault(file.format or PARQUET.name, file)
    if len(first) > 1:
        one, other = list(first.values())[:2]
        raise SourceError(
            f"{one.name} is {_taken_for(one)}, and {other.name} is {_taken_for(other)}: one source is of one format; "
            "choose with a glob, such as *.csv or **/*.parquet"
        )
    (kind,) = first
    names = ", ".join(without_secrets(path) for path in paths[:_MOST_SHOWN])
    more = f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else ""
    description = f"{names}{more} ({len(files)} {kind} {by_count(len(files), 'file')})"
    if kind == JSON_LINES:
        return spool(batches_of_rows(read_json_lines(files), description), description)
    return FileSource(_FORMATS[kind], files, description)


def _taken_for(file: DataFile) -> str:
    return file.format or f"taken for {PARQUET.name}"
