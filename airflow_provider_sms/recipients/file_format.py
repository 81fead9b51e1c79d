"""File formats: the functions that read each, and their errors, which name the file and quote no value from it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.paths import DataFile, codec_of, safe_cause

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Generator, Iterator, Sequence


SEPARATOR = b"separator"
"""Metadata of a schema: what separates the columns of the file, where that is not what its name says."""


class EmptyFileError(SourceError):
    """A file has no rows, and does not even name columns."""


class FileFormat(NamedTuple):
    """The functions that read files of one format."""

    name: str
    """The name of the format in a log."""
    read_schema: Callable[[DataFile], pa.Schema]
    """Returns the columns of a file, text of any kind as ``string``; raises SourceError for another format,
    and EmptyFileError."""
    read_rows: Callable[[DataFile, Sequence[str], int], Generator[pa.RecordBatch, None, None]]
    """Yields the rows of the named columns in order, in memory that does not grow with the file. The number says how
    many rows a batch should hold; a batch may have any size. Closes the file when it is closed. Raises SourceError
    where the file cannot be read."""


@contextmanager
def source_errors(file: DataFile, explain: Callable[[Exception], str]) -> Iterator[None]:
    """Raise a :class:`SourceError` that names the file for any error inside the ``with``.

    :param explain: returns the meaning of an Arrow error, whose own words may quote values and so are not passed on.
    :raises SourceError: the file is missing, of another format or damaged, or its storage fails.
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


@contextmanager
def opened_text(file: DataFile, names: re.Pattern[str]) -> Iterator[pa.NativeFile]:
    """Open a text file, decompressed as its name says.

    :param names: finds the compression in a name, as :func:`codec_of` takes it.
    :raises ArrowInvalid: a compressed file has no byte: even no text takes some, and Arrow reads it as no text.
    """
    codec = codec_of(file.name, names)
    with file.open() as stream, pa.PythonFile(stream, "r") as stored:
        if codec is None:
            yield stored
            return
        if not stored.read(1):
            raise pa.ArrowInvalid("no byte")
        stored.seek(0)
        with pa.CompressedInputStream(stored, codec) as content:
            yield content
