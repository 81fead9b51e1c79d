"""CSV files, plain and compressed, read a block at a time: every column is text, and every quote is checked.

Arrow parses the rows of each block: Python's own reader takes 2 µs a row more, of 12 that a message costs. Before it,
quotes that RFC 4180 does not allow are refused: a parser would take the rest of the file for one value, and nobody
would notice that its rows are missing.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from csv import reader as csv_reader
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.recipients.files import UTF_16, FileFormat, opened_text, other_format, source_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from io import BufferedReader

    from airflow_provider_sms.recipients.paths import DataFile

log = logging.getLogger(__name__)

_BLOCK = 1 << 20
"""Bytes read at once: a row may not be longer, so that an unclosed quote is found."""
_KNOWN_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 16
"""Bytes at the beginning of a file, and rows in them, by which the separator of its columns is found."""
_SAMPLE_ROWS = 20
_BOM = b"\xef\xbb\xbf"
_STATED = re.compile(rb'"?sep=([^\w"\r\n])"?(?:\r\n?|\n|$)', re.IGNORECASE)
"""A first line that states the separator, as Excel reads and writes it."""
_EMPTY_ROWS = re.compile(rb'(?:(?:[,;\t| ]|"")*(?:\r\n?|\n))+')
# Whole numbers of 9 to 15 digits: a date has 8.
_NUMBER = re.compile(r"\s*\+?(?:[\s().-]*[0-9]){9,15}(?:\.0)?\s*|[0-9]\.[0-9]+[eE]\+?[0-9]+")


def _read_schema(file: DataFile) -> pa.Schema:
    with _opened(file) as table:
        if table is None:
            return pa.schema([])
    if any(_NUMBER.fullmatch(name) for name in table.names):
        raise SourceError(f"{file.name}: the first line holds a number; it must hold the names of the columns")
    if table.delimiter != _named_delimiter(file):
        log.info("%s: the columns are separated by %r", file.name, table.delimiter)
    return pa.schema([(name, pa.string()) for name in _named(table.names)])


def _read_rows(file: DataFile, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    with _opened(file) as table:
        if table is None or not set(names) <= set(table.names):
            raise pa.ArrowInvalid("its columns have changed")
        stored, read = _named(table.names), 0
        for block in table.blocks:
            rows = _parsed(block, table, file, read)
            for column in rows.columns[len(stored) :]:
                if column.null_count < len(column):
                    # It may be the second half of a text.
                    row = read + column.is_valid().index(True).as_py()
                    raise SourceError(
                        f"{file.name}: row {row} of the file has a value in a column without a name. Name the column, "
                        f"or empty it; a value with {table.delimiter!r} in it is quoted"
                    )
            read += rows.num_rows
            if all(column.null_count for column in rows.columns):
                # Rows without a value are no rows, as blank lines are none.
                rows = rows.filter(reduce(pc.or_, [column.is_valid() for column in rows.columns]))
            kept = names or stored[:1]  # without a column, rows could not be counted
            yield from rows.select([stored.index(name) for name in kept]).rename_columns(kept).to_batches()


CSV = FileFormat("CSV", _read_schema, _read_rows)


class _Text(NamedTuple):
    """A file that is open after its header."""

    names: list[str]
    """Those in the header, empty ones included."""
    delimiter: str
    blocks: Iterator[bytes]
    """The rows, checked, in pieces that end with one."""


def _named(names: Sequence[str]) -> list[str]:
    """Return the columns up to the last with a name: a spreadsheet leaves empty ones after it."""
    return list(names[: max((place for place, name in enumerate(names, 1) if name.strip()), default=len(names))])


@contextmanager
def _opened(file: DataFile) -> Iterator[_Text | None]:
    """Open a file at its first row; None where it is empty."""
    explain = "is not a CSV file, or is damaged or cut short"
    with source_errors(file, lambda: explain), opened_text(file) as content:
        yield _begun(content, file)


def _begun(content: BufferedReader, file: DataFile) -> _Text | None:
    """Read the header.

    :raises SourceError: the file is of another format, or its columns may be separated in several ways.
    """
    beginning = content.read(_SAMPLE)
    if other := other_format(beginning) or (UTF_16 if b"\0" in beginning[:2] else None):
        raise SourceError(f"{file.name}: is {other}")
    table = _without_marks(beginning)
    if stated := _STATED.match(table):
        table = _without_marks(table[stated.end() :])
    if empty := _EMPTY_ROWS.match(table + b"\n"):
        table = table[empty.end() :]
    if not table:
        return None
    # Separators are ASCII, so text that is not UTF-8 has the same ones.
    lines = [line.decode("latin-1").replace("\0", " ") for line in table.splitlines(keepends=True)]
    sample = lines[:-1] if len(beginning) == _SAMPLE and len(lines) > 1 else lines
    delimiter = stated[1].decode("latin-1") if stated else _separator(sample, file)
    header = csv_reader(sample, delimiter=delimiter)
    names = next(header)
    end = sum(map(len, sample[: header.line_num]))
    before = len(beginning) - len(table)
    checked = _Checked(file, delimiter, beginning.count(b"\n", 0, before) + 1)
    checked.check(table[:end])
    return _Text([name.encode("latin-1").decode() for name in names], delimiter, checked.blocks(table[end:], content))


def _without_marks(text: bytes) -> bytes:
    """Return a text without the byte order marks before it: files that were joined may have several."""
    while text.startswith(_BOM):
        text = text.removeprefix(_BOM)
    return text


def _separator(sample: list[str], file: DataFile) -> str:
    """Return what separates the columns: the sign that the name of the file says, or another that fits it better.

    A sign fits if it divides the header and the rows into equally many values, more than one.

    :raises SourceError: several others fit.
    """
    named = _named_delimiter(file)
    widths = {
        sign: [len(row) for row in islice(filter(any, csv_reader(sample, delimiter=sign)), _SAMPLE_ROWS)]
        for sign in dict.fromkeys(named + _KNOWN_DELIMITERS)
    }
    dividing = [sign for sign, found in widths.items() if found[:1] > [1]]
    fitting = [sign for sign in dividing if len(set(widths[sign])) == 1] or dividing
    if not fitting or named in fitting:
        return named
    if len(fitting) > 1:
        signs = " or by ".join(map(repr, fitting))
        raise SourceError(f"{file.name}: the columns seem to be separated by {signs}, not by {named!r}")
    return fitting[0]


def _named_delimiter(file: DataFile) -> str:
    """Return the delimiter that the name of a file indicates."""
    return "\t" if file.ending == "tsv" else ","


def _parsed(block: bytes, table: _Text, file: DataFile, before: int) -> pa.Table:
    """Parse some rows.

    :param before: the rows of the file before them.
    """

    def refuse(row: csv.InvalidRow) -> str:
        if set(row.text.split(table.delimiter)) <= {"", '""'}:
            return "skip"
        ragged.append(row)
        return "error"

    ragged: list[csv.InvalidRow] = []
    names = [str(place) for place in range(len(table.names))]
    try:
        return csv.read_csv(
            pa.py_buffer(block),
            csv.ReadOptions(use_threads=False, block_size=len(block), column_names=names),
            csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True, invalid_row_handler=refuse),
            csv.ConvertOptions(
                # Otherwise 0821234567 would lose its zero, 2.78E+10 become a number, and the name NA become null.
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        if not ragged:
            raise
        row = ragged[0]
        values = f"{row.actual_columns} {by_count(row.actual_columns, 'value')}"
        columns = f"{row.expected_columns} {by_count(row.expected_columns, 'column')}"
        raise SourceError(
            f"{file.name}: row {before + row.number - 1} of the file has {values}, but the header names {columns}"
        ) from None


class _Checked:
    """The text of a file, which must be UTF-8, and in which every quote must follow RFC 4180.

    A quote opens at the start of a value and closes at the end of one; within a value it is doubled.

    :param line: the number of the first line.
    """

    def __init__(self, file: DataFile, delimiter: str, line: int) -> None:
        self._file = file
        self._line = line
        beside, text = re.escape(delimiter).encode() + rb"\r\n", b'"[^"]*(?:""[^"]*)*'
        opened = b"(?<![^%b])%b" % (beside, text)
        self._quotes = re.compile(rb'%b"(?![^%b])|(%b\Z)|(")' % (opened, beside, opened))
        """A value in quotes or, as a group, one that is never closed, or any other quote."""

    def blocks(self, text: bytes, content: BufferedReader) -> Iterator[bytes]:
        """Yield the text in pieces that end with a row: at a line break with as many opening as closing quotes."""
        is_whole = False
        while not is_whole:
            more = content.read(_BLOCK)
            text, is_whole = text + more, not more
            if b"\n" not in text:  # the line ends of old spreadsheets
                text = text.replace(b"\r", b"\n")
            end = len(text) if is_whole else text.rfind(b"\n") + 1
            while not is_whole and text.count(b'"', 0, end) % 2:
                end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
            if end:
                self.check(text[:end])
                yield text[:end]
                text = text[end:]
            elif len(text) > _BLOCK:
                self._refuse(text, 0, f"a row is longer than {_BLOCK >> 20} MiB; is a quote never closed?")

    def check(self, text: bytes) -> None:
        """Check the next piece of the text.

        :raises SourceError: names the line.
        """
        if (place := text.find(b"\0")) >= 0:
            self._refuse(text, place, "holds a zero byte, so it is not UTF-8 text")
        try:
            text.decode()
        except UnicodeDecodeError as error:
            self._refuse(text, error.start, f"holds {_encoding(text[error.start :])}")
        for found in self._quotes.finditer(text) if b'"' in text else ():
            if found[1]:
                self._refuse(text, found.start(), "a quote is opened and never closed")
            if found[2]:
                self._refuse(
                    text,
                    found.start(),
                    "a quote stands within a value; a value with a quote in it is quoted, with the quote doubled: "
                    '"5"" pipe"',
                )
        self._line += text.count(b"\n")

    def _refuse(self, text: bytes, place: int, words: str) -> NoReturn:
        line = self._line + text.count(b"\n", 0, place)
        raise SourceError(f"{self._file.name}: line {line}: {words}")


def _encoding(text: bytes) -> str:
    """Return words for some text that is not UTF-8, and what to do about it."""
    try:
        text.decode("cp1252")
    except UnicodeDecodeError:
        return "text that is not UTF-8"
    return "text that is not UTF-8 but could be Windows-1252, as spreadsheets write it; write it as UTF-8"
