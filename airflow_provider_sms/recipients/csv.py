"""CSV files, plain and compressed, read a block at a time: every column is text, and every quote is checked.

Arrow parses the rows of each block: Python's own reader takes 2 µs a row more, of 12 that a message costs. Before it,
quotes that RFC 4180 does not allow are refused: a parser would take the rest of the file for one value, and nobody
would notice that its rows are missing.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from csv import reader as csv_reader
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.recipients.files import Table, opened_text
from airflow_provider_sms.recipients.forms import could_be_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader

    from airflow_provider_sms.recipients.paths import DataFile

_BLOCK = 1 << 20
"""Bytes read at once: a row may not be longer, so that an unclosed quote is found."""
_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 16
"""Bytes at the beginning of a file, and rows in them, by which the separator of its columns is found."""
_SAMPLE_ROWS = 20
_DIGITS_OF_A_DATE = 8


@contextmanager
def opened_csv(file: DataFile) -> Iterator[Table]:
    """Open a CSV file at its first row."""
    with opened_text(file) as content:
        beginning = content.read(_SAMPLE)
        text = beginning.removeprefix(b"\xef\xbb\xbf")
        # Separators are ASCII, so text that is not UTF-8 has the same ones.
        lines = [line.decode("latin-1").replace("\0", " ") for line in text.splitlines(keepends=True)]
        delimiter = _separator(lines[:-1] if len(beginning) == _SAMPLE else lines, file)
        header = csv_reader(lines, delimiter=delimiter)
        row = next(filter(any, header), [])
        blocks = _blocks(content, text, sum(map(len, lines[: header.line_num])), file, delimiter)
        next(blocks, None)
        names = [name.encode("latin-1").decode() for name in row]
        if any(could_be_number(name) and sum(map(str.isdecimal, name)) > _DIGITS_OF_A_DATE for name in names):
            raise SourceError(f"{file.name}: the first line holds a number; it must hold the names of the columns")
        if not all(map(str.strip, names[1:])):  # pandas writes its index first, without a name
            # A value in it may be the rest of a text that nobody quoted.
            raise SourceError(
                f"{file.name}: the first line leaves a column without a name: name the column, or remove it"
            )
        yield (
            pa.schema([(name, pa.string()) for name in names]),
            lambda wanted: _rows(blocks, names, delimiter, wanted, file),
        )


def _rows(
    blocks: Iterator[bytes], names: list[str], delimiter: str, wanted: Sequence[str], file: DataFile
) -> Iterator[pa.RecordBatch]:
    read = 0
    for block in blocks:
        rows = _parsed(block, names, delimiter, file, read)
        read += rows.num_rows
        if all(column.null_count for column in rows.columns):
            # Rows without a value, as a spreadsheet leaves them, are no rows, as blank lines are none.
            rows = rows.filter(reduce(pc.or_, [column.is_valid() for column in rows.columns]))
        yield from rows.select(wanted).to_batches()


def _separator(sample: list[str], file: DataFile) -> str:
    """Return what separates the columns: the sign that the name of the file says, or another that fits it better.

    A sign fits if it divides the header and the rows into equally many values, more than one.
    """
    named = "\t" if file.ending == "tsv" else ","
    for sign in named + _DELIMITERS:
        widths = {len(row) for row in islice(filter(any, csv_reader(sample, delimiter=sign)), _SAMPLE_ROWS)}
        if len(widths) == 1 and widths != {1}:
            return sign
    return named


def _parsed(block: bytes, names: list[str], delimiter: str, file: DataFile, before: int) -> pa.Table:
    """Parse some rows, of which the file has others before."""

    def refuse(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    ragged: list[csv.InvalidRow] = []
    try:
        return csv.read_csv(
            pa.py_buffer(block),
            csv.ReadOptions(use_threads=False, block_size=len(block), column_names=names),
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse),
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


def _blocks(content: BufferedReader, text: bytes, end: int, file: DataFile, delimiter: str) -> Iterator[bytes]:
    """Yield the header, which ends at ``end``, and then the rows, checked, in pieces that end with a row."""
    beside, opened = re.escape(delimiter).encode() + rb"\r\n", b'"[^"]*(?:""[^"]*)*'
    opened = b"(?<![^%b])%b" % (beside, opened)
    # A value in quotes or, as a group, one that is never closed, or any other quote.
    quotes = re.compile(rb'%b"(?![^%b])|(%b\Z)|(")' % (opened, beside, opened))
    line, is_whole = 1, False
    while True:
        wrong = _wrong(text[:end], quotes)
        if not end and len(text) > _BLOCK:
            wrong = 0, f"a row is longer than {_BLOCK >> 20} MiB; is a quote never closed?"
        if wrong:
            place, words = wrong
            number = line + text.count(b"\n", 0, place)
            raise SourceError(f"{file.name}: line {number}: {words}")
        if end:
            yield text[:end]
            line += text.count(b"\n", 0, end)
        if is_whole:
            return
        more = content.read(_BLOCK)
        text, is_whole = text[end:] + more, not more
        end = len(text) if is_whole else text.rfind(b"\n") + 1
        while not is_whole and text.count(b'"', 0, end) % 2:  # a line break within a value
            end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1


def _wrong(text: bytes, quotes: re.Pattern[bytes]) -> tuple[int, str] | None:
    """Return the place of what is not allowed in a text, and words for it."""
    if (place := text.find(b"\0")) >= 0:
        return place, "holds a zero byte, so it is not UTF-8 text; is it another kind of file?"
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start, "holds text that is not UTF-8, such as the Windows-1252 of spreadsheets; write it as UTF-8"
    for found in quotes.finditer(text) if b'"' in text else ():
        if found[1]:
            return found.start(), "a quote is opened and never closed"
        if found[2]:
            words = "a quote stands within a value; a value with a quote in it is quoted, with the quote doubled: "
            return found.start(), words + '"5"" pipe"'
    return None
