"""CSV files, plain and compressed, read a block at a time: every column is text, and every quote is checked.

Arrow parses the rows. Before it, :class:`QuotedText` refuses quotes that RFC 4180 does not allow: a parser would take
the rest of the file for one value, and nobody would notice that its rows are missing.
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import csv

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.recipients.file_format import FileFormat, source_errors
from airflow_provider_sms.recipients.paths import CSV_NAME, codec_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile


_BLOCK = 1 << 20
"""Bytes parsed at once: a row may not be longer, so that an unclosed quote is found."""
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_OTHER_DELIMITERS = ";\t|,"
# Whole numbers of 9 to 15 digits: a date has 8.
_NUMBER = re.compile(r"\s*\+?(?:[\s().-]*[0-9]){9,15}(?:\.0)?\s*|[0-9]\.[0-9]+[eE]\+?[0-9]+")


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file, None) as (reader, _):
        names = reader.schema.names
    delimiter, _ = _dialect(file)
    other = next((sign for sign in _OTHER_DELIMITERS if len(names) == 1 and sign in names[0] and sign != delimiter), "")
    if other:
        raise SourceError(f"{file.name}: the columns seem to be separated by {other!r}, not by {delimiter!r}")
    if any(_NUMBER.fullmatch(name) for name in names):
        raise SourceError(f"{file.name}: the first line holds a number; it must hold the names of the columns")
    return pa.schema([(name, pa.string()) for name in names])


def _read_rows(file: DataFile, names: Sequence[str], _: int) -> Generator[pa.RecordBatch, None, None]:
    # Without a column, rows could not be counted.
    with _opened(file, names or _read_schema(file).names[:1]) as (reader, text):
        for batch in reader:
            if text.failure is not None:
                # Its last row may be cut short.
                break
            yield batch


CSV = FileFormat("CSV", _read_schema, _read_rows)


@contextmanager
def _opened(file: DataFile, names: Sequence[str] | None) -> Iterator[Any]:
    """Open a file at its first row.

    :param names: the columns to read, as text; None means all, to read their names.
    """
    ragged: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    delimiter, codec = _dialect(file)
    with source_errors(file, lambda error: _explain(error, ragged)), file.open() as stream:
        stored = pa.PythonFile(stream, "r")
        content = stored if codec is None else pa.CompressedInputStream(stored, codec)
        with content, closing(QuotedText(content, delimiter, file.name)) as text, _failure_of(text), csv.open_csv(
            pa.PythonFile(text, "r"),
            # One thread, so that Arrow knows the row of an error and does not read far ahead.
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                # Otherwise 0821234567 would lose its zero, 2.78E+10 become a number, and the name NA become null.
                column_types=None if names is None else dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        ) as reader:  # fmt: skip
            yield reader, text


def _dialect(file: DataFile) -> tuple[str, str | None]:
    """Return the delimiter and the compression that the name of a file indicates."""
    found = CSV_NAME.search(file.name.lower())
    return _DELIMITERS[found[1] if found else "csv"], codec_of(file.name, CSV_NAME)


def _explain(error: Exception, ragged: Sequence[csv.InvalidRow]) -> str:
    if ragged:
        row = ragged[0]
        values = f"{row.actual_columns} {by_count(row.actual_columns, 'value')}"
        columns = f"{row.expected_columns} {by_count(row.expected_columns, 'column')}"
        return f"{_row(row.number)} has {values}, but the header names {columns}"
    words = str(error)
    if isinstance(error, UnicodeDecodeError):
        return "the header holds text that is not UTF-8"
    if "UTF8" in words:
        found = re.search(r"Row #([0-9]+)", words)
        return f"{_row(int(found[1]) if found else None)} holds text that is not UTF-8"
    if "straddl" in words:
        return f"a row is longer than {_BLOCK >> 20} MiB; is a quote never closed?"
    if "Empty CSV" in words:
        return "is empty; the first line must hold the names of the columns"
    return "is not a CSV file, or is damaged or cut short"


def _row(number: int | None) -> str:
    """Return words for a row, counted from 0 without the header, which is Arrow's row 1."""
    return "a row" if number is None else f"row {number - 2} of the file"


@contextmanager
def _failure_of(text: QuotedText) -> Iterator[None]:
    """Raise, at the end of the ``with``, the error of reading the text, in place of the error that Arrow made of it."""
    try:
        yield
    except Exception:
        if text.failure is not None:
            raise text.failure from None
        raise
    if text.failure is not None:
        raise text.failure


_QUOTE = b'"'
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    b"\xff\xfe": "UTF-16 text; write it as UTF-8",
    b"\xfe\xff": "UTF-16 text; write it as UTF-8",
    b"PAR1": "a Parquet file; name it .parquet",
    b"ARROW1": "an Arrow or Feather file; name it .arrow",
    b"ORC": "an ORC file; name it .orc",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; name it .csv.gz",
}
"""The first bytes of files that are not CSV, and what to do about them."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class QuotedText:
    """A file to read from, in which every quote must follow RFC 4180.

    A quote opens at the start of a field and closes at the end of one; within a field it is doubled. Parsers accept
    other quotes: one that is never closed makes the rest of the file one value.

    :param content: the text.
    :param delimiter: the ASCII character between fields.
    :param name: the name of the file in an error.
    """

    def __init__(self, content: _Readable, delimiter: str, name: str) -> None:
        self._content = content
        self._name = name
        self._around = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
        self._last = b"\n"
        """The last byte that was passed on."""
        self._held = b""
        """A quote or a carriage return whose next byte has not been read yet, or nothing."""
        self._begun = self._ended = self._inside = False
        self._line = self._opening_line = 1
        self._reading = Lock()
        self.closed = False
        self.failure: Exception | None = None
        """The error of reading. :meth:`read` does not raise it: Arrow's reading thread might then wait for itself."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, at least 3; none at the end, when this is closed, or once ``failure`` is set.

        The last line ends with a line break, whether the file has one or not. The failure is a :class:`SourceError`
        that names the line where the text is of another format, or a quote is out of place.
        """
        with self._reading:
            if self._ended or self.closed or self.failure is not None:
                return b""
            try:
                return self._read(size)
            except Exception as error:  # noqa: BLE001 - storage can fail in any way
                self.failure = error
                return b""

    def close(self) -> None:
        """End reading: Arrow reads ahead in a thread, which does not notice that nobody wants the rest."""
        with self._reading:
            self.closed = True

    def _read(self, size: int) -> bytes:
        block, room = self._held, size - 1  # one for the line break
        while len(block) < room and (more := self._content.read(room - len(block))):
            block += more
        self._ended = len(block) < room
        if not self._begun:
            self._begun = True
            block = self._without_mark(block)
        if self._ended and (block or self._last)[-1:] not in (b"\n", b"\r"):
            block += b"\n"
        # A block ends neither with a quote nor within a line break, whose second half Arrow would take for a line.
        passed = block[:-1] if not self._ended and block.endswith((_QUOTE, b"\r")) else block
        self._held = block[len(passed) :]
        self._check(passed, block)
        self._last = passed[-1:]
        if self._ended and self._inside:
            raise SourceError(f"{self._name}: line {self._opening_line}: a quote is opened and never closed")
        return passed

    def _without_mark(self, beginning: bytes) -> bytes:
        for mark, other in _OTHERS.items():
            if beginning.startswith(mark):
                raise SourceError(f"{self._name}: is {other}")
        return beginning.removeprefix(_BOM)

    def _check(self, passed: bytes, block: bytes) -> None:
        """Check some bytes for zeros and for quotes out of place.

        :param passed: the bytes that are passed on.
        :param block: these and the quote or carriage return that is held back, if any.
        """
        if b"\0" in passed:
            line = self._line + passed.count(b"\n", 0, passed.index(b"\0"))
            raise SourceError(f"{self._name}: line {line}: holds a zero byte, so it is not UTF-8 text")
        if _QUOTE in passed:
            self._check_quotes(passed, np.frombuffer(self._last + block, np.uint8))
        self._line += passed.count(b"\n")

    def _check_quotes(self, passed: bytes, text: np.ndarray) -> None:
        """Check that each quote stands beside a delimiter, a line break or another quote.

        :param text: these bytes with those around them.
        """
        quotes = np.flatnonzero(text[1 : len(passed) + 1] == _QUOTE[0]) + 1
        first = int(self._inside)
        opening, closing = quotes[first::2], quotes[1 - first :: 2]
        astray = [
            *opening[~np.isin(text[opening - 1], self._around)],
            *closing[~np.isin(text[closing + 1], self._around)],
        ]
        if astray:
            raise SourceError(
                f"{self._name}: line {self._line_of(min(astray), passed)}: a quote stands within a value; a value with "
                'a quote in it is quoted, with the quote doubled: "5"" pipe"'
            )
        self._inside = (len(quotes) + first) % 2 == 1
        if self._inside:
            self._opening_line = self._line_of(quotes[-1], passed)

    def _line_of(self, position: int, passed: bytes) -> int:
        return self._line + passed.count(b"\n", 0, int(position) - 1)
