"""CSV files, plain and compressed, read a block at a time: every column is text, as it is written."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.messages.file_format import Format, Header, reading
from airflow_provider_sms.messages.paths import CSV_NAME
from airflow_provider_sms.messages.quoting import QuotedText

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from airflow_provider_sms.messages.paths import DataFile

_BLOCK = 1 << 20
"""Bytes parsed at once; no row may be longer."""
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_CODECS = {None: None, "gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_OTHER_DELIMITERS = ";\t|,"
# Whole numbers of 9 to 15 digits: a date has 8.
_NUMBER = re.compile(r"\s*\+?(?:[\s().-]*[0-9]){9,15}(?:\.0)?\s*|[0-9]\.[0-9]+[eE]\+?[0-9]+")


def _read_header(file: DataFile) -> Header:
    with _opened(file, None) as (reader, _):
        names = reader.schema.names
    delimiter, _ = _style(file)
    other = next((sign for sign in _OTHER_DELIMITERS if len(names) == 1 and sign in names[0] and sign != delimiter), "")
    if other:
        raise SourceError(f"{file.name}: the columns seem to be separated by {other!r}, not by {delimiter!r}")
    if any(_NUMBER.fullmatch(name) for name in names):
        raise SourceError(f"{file.name}: the first line holds a number; it must hold the names of the columns")
    return Header(pa.schema([(name, pa.string()) for name in names]), None)


def _read_rows(file: DataFile, names: Sequence[str], _: int) -> Generator[pa.RecordBatch, None, None]:
    # Without a column, rows could not be counted.
    with _opened(file, names or _read_header(file).schema.names[:1]) as (reader, text):
        for batch in reader:
            if text.failure is not None:
                # The last row of it may be cut short.
                break
            yield batch


CSV = Format("CSV", _read_header, _read_rows)


@contextmanager
def _opened(file: DataFile, names: Sequence[str] | None) -> Iterator[Any]:
    """Open a file at its first row.

    :param names: the columns to give, as text; None: all, for a look at their names.
    """
    ragged: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    delimiter, codec = _style(file)
    with reading(file, lambda error: _explain(error, ragged)), file.open() as stream:
        stored = pa.PythonFile(stream, "r")
        content = stored if codec is None else pa.CompressedInputStream(stored, codec)
        with content, closing(QuotedText(content, delimiter, file.name)) as text, _failing(text), csv.open_csv(
            pa.PythonFile(text, "r"),
            # One thread, so that Arrow knows the row of an error and reads a bounded way ahead.
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                # Else 0821234567 would lose its zero, 2.78E+10 become a number, and the name NA be no name.
                column_types=None if names is None else dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        ) as reader:  # fmt: skip
            yield reader, text


def _style(file: DataFile) -> tuple[str, str | None]:
    """Give the delimiter and the compression that the name of a file says."""
    found = CSV_NAME.search(file.name.lower())
    kind, compression = found.groups() if found else ("csv", None)
    return _DELIMITERS[kind], _CODECS[compression]


def _explain(error: Exception, ragged: Sequence[csv.InvalidRow]) -> str:
    if ragged:
        row = ragged[0]
        return (
            f"{_row(row.number)} has {row.actual_columns} values, but the header names {row.expected_columns} columns"
        )
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
    """Say which row, as all rows are counted here: from 0, without the header, which is Arrow's row 1."""
    return "a row" if number is None else f"row {number - 2} of the file"


@contextmanager
def _failing(text: QuotedText) -> Iterator[None]:
    """Raise what reading the text raised, at the end and in place of what Arrow made of it."""
    try:
        yield
    except Exception:
        if text.failure is not None:
            raise text.failure from None
        raise
    if text.failure is not None:
        raise text.failure
