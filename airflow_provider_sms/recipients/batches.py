"""Sources as their readers see them: batches of rows, read once, each batch with columns and types of its own.

A value's text and its part of a key depend on the value alone, so no two batches need the same types: a column may hold
whole numbers in one batch and words in the next.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.columns import stored_names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

BATCH_ROWS = 10_000
"""The most rows of a batch: a producer may hand out millions at once, and a batch is held in memory."""


@dataclass(eq=False, repr=False)
class Source:
    """Rows of recipients, which can be read once."""

    description: str
    """The name of the source in a log, without values of rows."""
    read: Callable[[Sequence[str] | None], Generator[pa.RecordBatch, None, None]]
    """Yields the rows of the named columns, None for all, in batches of any size; one without rows tells columns."""
    part: str = ""
    """The name of the file that is being read, with which the errors of its rows begin."""
    argument: str = ""
    """The argument that gave the source, with which its errors begin."""

    def batches(
        self, columns: Sequence[str] | None = None, check: Callable[[pa.Schema], object] = lambda _: None
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows in order, in batches that are not empty, of at most :data:`BATCH_ROWS` rows.

        :param columns: as arguments name them; None means all.
        :param check: raises an error for columns that cannot be used: those of each batch that has others than before.
        """
        with naming(self.argument), closing(self.read(columns)) as batches:
            seen: pa.Schema | None = None
            for batch in batches:
                if not batch.schema.names and not batch.num_rows:
                    continue  # an empty list of rows has no columns, and lacks none
                if batch.schema != seen:
                    check_names(batch.schema.names, self.part or self.description)
                    try:
                        check(batch.schema)
                    except ColumnError as error:
                        if self.part:
                            error.args = (f"{self.part}: {error}",)
                        raise
                    seen = batch.schema
                rows = batch.select(stored_names(batch.schema, columns))
                for start in range(0, rows.num_rows, BATCH_ROWS):
                    yield self._checked(rows.slice(start, BATCH_ROWS))

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:  # it would fail later, with an error that names no source
                words = f"column {mask_numbers_in(name)!r} holds text that is not UTF-8, or is damaged"
                raise SourceError(f"{self.part or self.description}: {words}") from None
        return batch


def batch_without_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch that tells columns: there may be no other."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Put the argument that gave a source before the words of its errors."""
    try:
        yield
    except SourceError as error:
        if argument:
            error.args = (f"{argument}: {error}",)
        raise


def check_names(names: Sequence[str], description: str) -> None:
    """Refuse columns that cannot be told apart."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        shown = mask_numbers_in(twice)
        raise SourceError(f"{description}: more than one column is named {shown!r}; rename or drop the others")
