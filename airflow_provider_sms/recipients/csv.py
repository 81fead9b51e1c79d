"""CSV files, plain and compressed, read a block at a time: every column is text, and every quote is checked.

Arrow parses the rows. Before it, :class:`QuotedText` refuses quotes that RFC 4180 does not allow: a parser would take
the rest of the file for one value, and nobody would notice that its rows are missing.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from contextlib import closing, contextmanager
from csv import reader as csv_reader
from functools import reduce
from io import BytesIO, StringIO
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.recipients.file_format import (
    SEPARATOR,
    EmptyFileError,
    FileFormat,
    opened_text,
    source_errors,
)
from airflow_provider_sms.recipients.paths import CSV_NAME

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.recipients.paths import DataFile


_BLOCK = 1 << 20
"""Bytes parsed at once: a row may not be longer, so that an unclosed quote is found."""
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_KNOWN_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 16
"""Bytes at the beginning of a file, and rows in them, by which the separator of its columns is found."""
_SAMPLE_ROWS = 20
_STATED = re.compile(rb'"?sep=([^\w"\r\n])"?(?:\r\n?|\n|$)', re.IGNORECASE)
"""A first line that states the separator, as Excel reads and writes it."""
_EMPTY_ROWS = re.compile(rb'(?:(?:[,;\t| ]|"")*(?:\r\n?|\n))+')
# Whole numbers of 9 to 15 digits: a date has 8.
_NUMBER = re.compile(r"\s*\+?(?:[\s().-]*[0-9]){9,15}(?:\.0)?\s*|[0-9]\.[0-9]+[eE]\+?[0-9]+")


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file) as (reader, text):
        names = _named(reader.schema.names)
    if any(_NUMBER.fullmatch(name) for name in names):
        raise SourceError(f"{file.name}: the first line holds a number; it must hold the names of the columns")
    separator = None if text.delimiter == _named_delimiter(file) else {SEPARATOR: text.delimiter}
    return pa.schema([(name, pa.string()) for name in names], separator)


def _named(names: Sequence[str]) -> Sequence[str]:
    """Return the columns up to the last with a name: a spreadsheet leaves empty ones after it."""
    return names[: max((place for place, name in enumerate(names, 1) if name.strip()), default=len(names))]


def _read_rows(file: DataFile, names: Sequence[str], _: int) -> Generator[pa.RecordBatch, None, None]:
    with _opened(file) as (reader, text):
        stored = _named(reader.schema.names)
        if not set(names) <= set(stored):
            raise pa.ArrowInvalid("its columns have changed")
        read = 0
        for batch in reader:
            if text.failure is not None:
                # Its last row may be cut short.
                break
            _refuse_nameless(batch.columns[len(stored) :], read, text)
            read += batch.num_rows
            # Without a column, rows could not be counted.
            kept = {name: batch.column(stored.index(name)) for name in names or stored[:1]}
            rows = pa.RecordBatch.from_arrays(list(kept.values()), list(kept))
            if all(column.null_count for column in batch.columns):
                # Rows without a value are no rows, as blank lines are none.
                rows = rows.filter(reduce(pc.or_, [column.is_valid() for column in batch.columns]))
            yield rows


def _refuse_nameless(columns: Sequence[pa.Array], before: int, text: QuotedText) -> None:
    """Refuse a value in a column without a name: it may be the second half of a text.

    :param before: the rows of the file before those of the columns.
    """
    for column in columns:
        if column.null_count < len(column):
            row = before + column.is_valid().index(True).as_py()
            raise SourceError(
                f"{text.name}: row {row} of the file has a value in a column without a name. Name the column, or empty "
                f"it; a value with {text.delimiter!r} in it is quoted"
            )


CSV = FileFormat("CSV", _read_schema, _read_rows)


@contextmanager
def _opened(file: DataFile) -> Iterator[tuple[csv.CSVStreamingReader, QuotedText]]:
    """Open a file at its first row; all columns are text."""
    ragged: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        if not row.text.strip(f'{text.delimiter}"'):
            return "skip"
        ragged.append(row)
        return "error"

    with source_errors(file, lambda error: _explain(error, ragged)), opened_text(file, CSV_NAME) as content:
        text, names = _begun(content, file)
        with closing(text), _failure_of(text), csv.open_csv(
            pa.PythonFile(text, "r"),
            # One thread, so that Arrow knows the row of an error and does not read far ahead.
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(
                delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=csv.ConvertOptions(
                # Otherwise 0821234567 would lose its zero, 2.78E+10 become a number, and the name NA become null.
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        ) as reader:  # fmt: skip
            if text.failure is None and set(reader.schema.types) != {pa.string()}:
                raise pa.ArrowInvalid("its header was read in two ways")
            yield reader, text


def _begun(content: _Readable, file: DataFile) -> tuple[QuotedText, list[str]]:
    """Return the text of a file from its header on, and the names in the header.

    :raises EmptyFileError: there is no header.
    :raises SourceError: the file is of another format, or its columns may be separated in several ways.
    """
    beginning = b""
    while len(beginning) < _SAMPLE and (more := content.read(_SAMPLE - len(beginning))):
        beginning += more
    is_whole = len(beginning) < _SAMPLE
    for mark, other in _OTHERS.items():
        if beginning.startswith(mark):
            raise SourceError(f"{file.name}: is {other}")
    if b"\0" in beginning[:2]:
        raise SourceError(f"{file.name}: is {_UTF_16}")
    header = _without_marks(beginning)
    stated = _STATED.match(header)
    header = _without_marks(header[stated.end() :]) if stated else header
    empty = _EMPTY_ROWS.match(header + b"\n")
    header = header[empty.end() :] if empty else header
    if not header:
        raise EmptyFileError(f"{file.name}: is empty; the first line must hold the names of the columns")
    # Separators are ASCII, so text that is not UTF-8 has the same ones.
    sample = header.decode("latin-1").replace("\0", " ")
    if not is_whole:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    delimiter = stated[1].decode("latin-1") if stated else _separator(sample, file)
    names = next(_rows(sample, delimiter))
    line = beginning[: len(beginning) - len(header)].count(b"\n") + 1
    text = QuotedText(_Joined(header, content), delimiter, file.name, line)
    return text, [name.encode("latin-1").decode(errors="replace") for name in names]


def _without_marks(text: bytes) -> bytes:
    """Return a text without the byte order marks before it: files that were joined may have several."""
    while text.startswith(_BOM):
        text = text.removeprefix(_BOM)
    return text


def _separator(sample: str, file: DataFile) -> str:
    """Return what separates the columns: the sign that the name of the file says, or another that fits it better.

    A sign fits if it divides the header and the rows into equally many values, more than one.

    :raises SourceError: several others fit.
    """
    named = _named_delimiter(file)
    widths = {
        sign: [len(row) for row in islice(filter(any, _rows(sample, sign)), _SAMPLE_ROWS)]
        for sign in dict.fromkeys(named + _KNOWN_DELIMITERS)
    }
    dividing = [sign for sign, found in widths.items() if found[0] > 1]
    fitting = [sign for sign in dividing if len(set(widths[sign])) == 1] or dividing
    if not fitting or named in fitting:
        return named
    if len(fitting) > 1:
        signs = " or by ".join(map(repr, fitting))
        raise SourceError(f"{file.name}: the columns seem to be separated by {signs}, not by {named!r}")
    return fitting[0]


def _rows(sample: str, delimiter: str) -> Iterator[list[str]]:
    return csv_reader(StringIO(sample, newline=""), delimiter=delimiter)


def _named_delimiter(file: DataFile) -> str:
    """Return the delimiter that the name of a file indicates."""
    found = CSV_NAME.search(file.name.lower())
    return _DELIMITERS[found[1] if found else "csv"]


def _explain(error: Exception, ragged: Sequence[csv.InvalidRow]) -> str:
    if ragged:
        row = ragged[0]
        values = f"{row.actual_columns} {by_count(row.actual_columns, 'value')}"
        columns = f"{row.expected_columns} {by_count(row.expected_columns, 'column')}"
        # Arrow's first row is the header, and it knows the number of a row in most cases.
        which = "a row" if row.number is None else f"row {row.number - 2} of the file"
        return f"{which} has {values}, but the header names {columns}"
    if "straddl" in str(error):
        return f"a row is longer than {_BLOCK >> 20} MiB; is a quote never closed?"
    return "is not a CSV file, or is damaged or cut short"


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
_UTF_16 = "UTF-16 text; write it as UTF-8"
_OTHERS = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"PAR1": "a Parquet file; name it .parquet",
    b"ARROW1": "an Arrow or Feather file; name it .arrow",
    b"ORC": "an ORC file; write it as Parquet",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; name it .csv.gz",
}
"""The first bytes of files that are not CSV, and what to do about them."""


def _encoding(text: bytes) -> str:
    """Return words for some text that is not UTF-8, and what to do about it."""
    try:
        text.decode("cp1252")
    except UnicodeDecodeError:
        return "text that is not UTF-8"
    return "text that is not UTF-8 but could be Windows-1252, as spreadsheets write it; write it as UTF-8"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Joined:
    """A text whose beginning was read already."""

    def __init__(self, beginning: bytes, rest: _Readable) -> None:
        self._beginning = BytesIO(beginning)
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        return self._beginning.read(size) or self._rest.read(size)


class QuotedText:
    """A file to read from, which must be UTF-8, and in which every quote must follow RFC 4180.

    A quote opens at the start of a field and closes at the end of one; within a field it is doubled. Parsers accept
    other quotes: one that is never closed makes the rest of the file one value.

    :param content: the text.
    :param delimiter: the ASCII character between fields.
    :param name: the name of the file in an error.
    :param line: the number of the first line.
    """

    def __init__(self, content: _Readable, delimiter: str, name: str, line: int = 1) -> None:
        self.delimiter = delimiter
        self.name = name
        self._content = content
        self._decoder = getincrementaldecoder("utf-8")()
        self._around = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
        self._last = b"\n"
        """The last byte that was passed on."""
        self._held = b""
        """A quote or a carriage return whose next byte has not been read yet, or nothing."""
        self._ended = self._inside = False
        self._line = self._opening_line = line
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
        if self._ended and (block or self._last)[-1:] not in (b"\n", b"\r"):
            block += b"\n"
        # A block ends neither with a quote nor within a line break, whose second half Arrow would take for a line.
        passed = block[:-1] if not self._ended and block.endswith((_QUOTE, b"\r")) else block
        self._held = block[len(passed) :]
        self._check(passed, block)
        self._last = passed[-1:]
        if self._ended and self._inside:
            raise SourceError(f"{self.name}: line {self._opening_line}: a quote is opened and never closed")
        return passed

    def _check(self, passed: bytes, block: bytes) -> None:
        """Check some bytes for zeros, for text that is not UTF-8, and for quotes out of place.

        :param passed: the bytes that are passed on.
        :param block: these and the quote or carriage return that is held back, if any.
        """
        if b"\0" in passed:
            line = self._line + passed.count(b"\n", 0, passed.index(b"\0"))
            raise SourceError(f"{self.name}: line {line}: holds a zero byte, so it is not UTF-8 text")
        try:
            self._decoder.decode(passed, self._ended)
        except UnicodeDecodeError as error:
            text, start = error.object, error.start
            line = self._line + text.count(b"\n", 0, start)
            raise SourceError(f"{self.name}: line {line}: holds {_encoding(text[start:])}") from None
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
                f"{self.name}: line {self._line_of(min(astray), passed)}: a quote stands within a value; a value with "
                'a quote in it is quoted, with the quote doubled: "5"" pipe"'
            )
        self._inside = (len(quotes) + first) % 2 == 1
        if self._inside:
            self._opening_line = self._line_of(quotes[-1], passed)

    def _line_of(self, position: int, passed: bytes) -> int:
        return self._line + passed.count(b"\n", 0, int(position) - 1)
