from __future__ import annotations

import uuid
from decimal import Context, Decimal, FloatOperation, localcontext
from enum import Enum

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.tables import read

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

NAN = float("nan")
NUMBER = "27820000001"
ROWS = [{"destination": NUMBER, "n": 1}, {"destination": None, "n": 2}]
VALUES = {"destination": [NUMBER, None], "n": [1, 2]}
QUERY = f"SELECT '{NUMBER}' AS destination, 1 AS n UNION ALL SELECT NULL, 2 ORDER BY n"


@pytest.mark.parametrize(
    ("make", "description"),
    [
        (lambda: ROWS, "list of 2 rows"),
        (lambda: [{"n": 1, "destination": NUMBER}, {"n": 2}], "list of 2 rows"),
        (lambda: pa.Table.from_pylist(ROWS), "Table"),
        (lambda: pa.RecordBatch.from_pylist(ROWS), "RecordBatch"),
        (lambda: pl.DataFrame(ROWS), "DataFrame"),
        (lambda: duckdb.sql(QUERY), "DuckDBPyRelation"),
        (lambda: pa.Table.from_pylist(ROWS).to_reader(), "RecordBatchReader"),
        (lambda: (row for row in ROWS), "generator"),
        (lambda: pd.DataFrame(ROWS, index=[7, 8]).astype({"destination": object}), "DataFrame of 2 rows"),
    ],
)
def test_whatever_has_rows(make, description):
    """What speaks Arrow's C stream interface, yields dicts or is a DataFrame is a source; an index is left out."""
    assert read(make()) == VALUES
    assert read(make(), ["n"]) == {"n": [1, 2]}
    assert open_source(make()).description == description


@pytest.mark.parametrize("values", [["a", "b", None], [None]], ids=["some", "none"])
def test_categories_of_polars_are_text(values):
    """A Categorical or an Enum, whose texts pyarrow cannot decode, is read as the text of each row."""
    kinds = {"categorical": pl.Categorical, "enum": pl.Enum(["a", "b"])}
    frame = pl.DataFrame({name: pl.Series(values, dtype=kind) for name, kind in kinds.items()})
    assert read(frame) == {"categorical": values, "enum": values}


def test_columns_come_and_change(monkeypatch):
    """A key may come late, and a column has a type of its own in each batch; one of lists is no obstacle."""
    assert read(iter([{"a": 1, "b": ["x"]}, {"a": 2, "b": []}]), ["a"]) == {"a": [1, 2]}
    monkeypatch.setattr("airflow_provider_sms.recipients.memory.BATCH_ROWS", 1)
    assert read(iter([{"a": 1}, {"b": "x"}, {"a": 2.5}])) == {"a": [1, None, 2.5], "b": [None, "x", None]}
    assert read(iter([{"a": 1}, {"a": None}, {"a": "x"}, {"a": 2**60}])) == {"a": [1, None, "x", 2**60]}


# Columns of values


MIXED = ["0821234567", 821234567, 27821234567.0, None, NAN, pd.NA, pd.NaT, np.int64(5), Decimal("1.50"), True]
MIXED_AS_TEXT = ["0821234567", "821234567", "27821234567", None, None, None, None, "5", "1.5", "True"]


@pytest.mark.parametrize(
    "source",
    [
        [{"destination": value} for value in MIXED],
        pd.DataFrame({"destination": pd.Series(MIXED, dtype=object)}),
        [{"destination": value} for value in reversed(MIXED)][::-1],
    ],
    ids=["dicts", "object column", "reversed"],
)
def test_a_column_of_text_and_numbers(source):
    """A column that mixes text and numbers, as spreadsheets have it, is text: numbers as digits, nothing as null."""
    with localcontext(Context(traps=[FloatOperation])):  # a DAG's file may forbid that floats become decimals
        assert read(source) == {"destination": MIXED_AS_TEXT}


class Status(str, Enum):
    """A member is a text, and its own way to write itself names it."""

    PAID = "paid"


@pytest.mark.parametrize("others", [[], [7], ["x"], [None, True], [pd.NA], [pd.NaT], [NAN]], ids=str)
@pytest.mark.parametrize("make", [list, iter, lambda rows: pd.DataFrame(rows, dtype=object)], ids=["l", "i", "f"])
@pytest.mark.parametrize(
    ("value", "text"), [(Status.PAID, "paid"), (uuid.UUID(int=7), str(uuid.UUID(int=7))), (np.float32(0.1), "0.1")]
)
def test_a_value_reads_as_its_text_beside_any_other(value, text, make, others):
    """With one more row, everybody would be told of Status.PAID; whatever pandas writes for no value is none."""
    assert read(make([{"x": each} for each in [value, *others]]))["x"][0] == text


@pytest.mark.parametrize(
    ("series", "values"),
    [
        (pd.Series(["a", None], dtype="string"), ["a", None]),
        (pd.Series(["a", 1, None], dtype="category"), ["a", "1", None]),
        *((pd.Series([1, None], dtype=kind), [1, None]) for kind in ("Int64", "int64[pyarrow]", None)),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series([0, 5], dtype="Sparse[int]"), [0, 5]),
        (pd.Series([27821234567, 27821234567.0, None], dtype=object), [27821234567.0, 27821234567.0, None]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_pandas_types(series, values):
    """Every pandas type works, nothing is null in each, and a column's name that is no text becomes text."""
    assert {"0": values} == read(pd.DataFrame({0: series}))


# What is refused


@pytest.mark.parametrize("make", [list, lambda rows: pd.DataFrame(rows, dtype=object)], ids=["dicts", "DataFrame"])
@pytest.mark.parametrize(
    "values",
    [
        ["secret", object],
        ["secret", 1j],
        ["secret", "secret\ud83d"],
        [["secret"], "secret"],
        # Arrow ends the process for some of these, so it is not asked to make one column of two kinds.
        *([np.datetime64("2026-01-01"), each] for each in (np.float32(5), np.int64(5), np.bool_(1), "x")),
        [np.datetime64("2026-01-01"), np.timedelta64(1, "s")],
    ],
    ids=str,
)
def test_values_that_no_column_can_hold(values, make):
    """The column is named, masked where a table without names has a recipient there, and its values are not."""
    words = r"no column can be made of the values of '2782\*{5}01', which are of type "
    with pytest.raises(SourceError, match=words) as caught:
        read(make([{NUMBER: value} for value in values]))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


KINDS = "a list of recipients must hold one kind of element: paths, dicts or numbers"
DICTS = "an iterator of recipients yields dicts, one for each row, not"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: iter([(NUMBER,)]), f"{DICTS} tuple"),
        (lambda: iter([NUMBER]), f"{DICTS} str"),
        (lambda: iter([{"destination": NUMBER}] * 10_001 + [None]), r"not NoneType \(row 10001\)"),
        (lambda: iter([{1: NUMBER}]), "the keys of the dicts are column names, so each must be text"),
        (lambda: iter([{}, {}]), "there are rows, but no columns"),
        (lambda: pd.DataFrame(index=range(3)), "there are rows, but no columns"),
        (lambda: pa.chunked_array([[NUMBER]]), "ChunkedArray: its Arrow stream cannot be read as a table"),
        (lambda: pl.DataFrame(ROWS)["destination"], "Series: its Arrow stream cannot be read as a table"),
        (lambda: pa.table([[NUMBER], [1]], names=["a", "a"]).to_reader(), "more than one column is named 'a'"),
        (lambda: pa.table([[1], [2]], names=[NUMBER] * 2), r"more than one column is named '2782\*{5}01'"),
        (lambda: pd.DataFrame([[1, 2]], columns=["0", 0]), "more than one column is named '0'"),
        *((lambda source=source: source, "cannot be read from") for source in (None, 5, {NUMBER}, b"a", uuid.uuid4())),
        (lambda: ["a.parquet", {"a": 1}], KINDS),
        (lambda: [{"a": 1}, None], KINDS),
        (lambda: [5], KINDS),
        (lambda: [pd.DataFrame()], KINDS),
    ],
)
def test_what_is_no_table_is_refused(make, words):
    """In words that show nothing of it."""
    with pytest.raises(SourceError, match=words) as caught:
        read(make())
    assert "2782000" not in str(caught.value)


def test_a_stream_that_breaks():
    """The words of a broken stream may quote a row, so only the kind of its error is told."""

    def batches():
        yield pa.RecordBatch.from_pydict({"a": ["x"]})
        raise pa.ArrowInvalid(NUMBER)

    with pytest.raises(SourceError, match="RecordBatchReader: its Arrow stream cannot be read as a table by") as caught:
        read(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.string())]), batches()))
    assert "2782" not in str(caught.value)
    assert caught.value.__cause__ is None
