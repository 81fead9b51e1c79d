"""What a file format can do, and how its failures are told: by the file's name, without a value of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.paths import DataFile, safe_cause

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence


class Header(NamedTuple):
    """What a file says of itself before its rows are read."""

    schema: pa.Schema
    """Its columns; text of any kind as ``string``."""
    num_rows: int | None
    """None where only reading them would tell."""


class Format(NamedTuple):
    """A way to read files."""

    name: str
    """What to call it in a log."""
    read_header: Callable[[DataFile], Header]
    """Look at a file; raises SourceError where it is not of the format."""
    read_rows: Callable[[DataFile, Sequence[str], int], Generator[pa.RecordBatch, None, None]]
    """Go through the rows in order: the columns of these names, in batches of any size, in memory that does not grow
    with the file. The number is of rows that a batch had best hold. Closes the file when it is closed. Raises
    SourceError where the file cannot be read."""


@contextmanager
def reading(file: DataFile, explain: Callable[[Exception], str]) -> Iterator[None]:
    """Say of this file whatever fails inside of the ``with``.

    :param explain: says what an error of Arrow's means. Its own words may quote values, so they are not passed on.
    :raises SourceError: the file is not there, not what it should be, damaged, or its storage fails.
    """
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{file.name}: there is no such file") from None
    except Exception as error:  # noqa: BLE001 - each filesystem raises errors of its own
        of_the_content = (pa.ArrowException, UnicodeDecodeError)
        if isinstance(error, of_the_content) or (isinstance(error, OSError) and error.errno is None):
            raise SourceError(f"{file.name}: {explain(error)}") from None
        raise SourceError(f"{file.name}: cannot be read: {type(error).__name__}") from safe_cause(error, file.path)
