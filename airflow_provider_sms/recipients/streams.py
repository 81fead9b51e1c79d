"""Recipients that can be read only once: Arrow's C streams, and iterators of dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.memory import batch_of_rows
from airflow_provider_sms.recipients.spool import PIECE_ROWS


class Pieces(NamedTuple):
    """Rows that can be read only once."""

    batches: Iterator[pa.RecordBatch]
    description: str
    """The name of the source in a log, without values of rows."""


def can_be_read_once(source: object) -> bool:
    """Return whether reading a source uses it up, as it does a generator or a ``RecordBatchReader``."""
    return isinstance(source, (Iterator, Pieces))


def pieces_of_stream(source: Any) -> Pieces:
    """Return the rows of an object with Arrow's C stream interface.

    :raises SourceError: it hands out no table.
    """
    description = type(source).__name__
    return Pieces(_read_stream(source, description), description)


def pieces_of_rows(source: Iterator[Any]) -> Pieces:
    """Return the rows of an iterator of dicts; a key that a dict lacks is null there."""
    description = type(source).__name__
    return Pieces(batches_of_rows(source, description), description)


def batches_of_rows(rows: Iterator[Any], description: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an iterator of dicts.

    :raises SourceError: it yields anything else, or values from which no column can be made.
    """
    names: list[str] = []
    read = 0
    while piece := list(islice(rows, PIECE_ROWS)):
        for row, each in enumerate(piece, read):
            if not isinstance(each, Mapping):
                kind = type(each).__name__
                raise SourceError(
                    f"{description}: an iterator of recipients yields dicts, one for each row, not {kind} (row {row})"
                )
        read += len(piece)
        batch = batch_of_rows(piece, description, names)
        names = batch.schema.names
        yield batch


def batches_of_reader(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader, after one without rows that gives the columns: there may be no other."""
    yield pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in reader.schema], schema=reader.schema)
    yield from reader


def _read_stream(source: Any, description: str) -> Iterator[pa.RecordBatch]:
    try:
        with _reader(source) as reader:
            yield from batches_of_reader(reader)
    except (pa.ArrowException, NotImplementedError, OSError, TypeError, ValueError) as error:
        if isinstance(source, pa.ChunkedArray) or hasattr(type(source), "dtype"):
            raise SourceError(
                f"{description}: it is one column, not a table. Pass the whole table, or the column as a list"
            ) from None
        # The producer's words may quote values.
        raise SourceError(
            f"{description}: its Arrow stream cannot be read by pyarrow {pa.__version__}: {type(error).__name__}"
        ) from None


def _reader(source: Any) -> pa.RecordBatchReader:
    if isinstance(source, pa.RecordBatchReader):
        return source
    if hasattr(pa.RecordBatchReader, "from_stream"):
        return pa.RecordBatchReader.from_stream(source)
    return pa.RecordBatchReader._import_from_c_capsule(source.__arrow_c_stream__())  # noqa: SLF001 - before version 15
