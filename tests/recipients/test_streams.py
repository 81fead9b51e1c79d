from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.tables import first_schema, read

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.messages.compose import Composer

ROWS = [{"destination": "27820000001", "n": 1}, {"destination": None, "n": 2}]
VALUES = {"destination": ["27820000001", None], "n": [1, 2]}
QUERY = "SELECT '27820000001' AS destination, 1 AS n UNION ALL SELECT NULL, 2 ORDER BY n"


@pytest.mark.parametrize("values", [["a", "b", None], [None]], ids=["some", "none"])
def test_categories_of_polars_are_text(values):
    """A Categorical or an Enum, whose texts pyarrow cannot decode, is read as the text of each row."""
    kinds = {"categorical": pl.Categorical, "enum": pl.Enum(["a", "b"])}
    frame = pl.DataFrame({name: pl.Series(values, dtype=kind) for name, kind in kinds.items()})
    assert read(frame) == {"categorical": values, "enum": values}


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.DataFrame(ROWS),
        lambda: duckdb.sql(QUERY),
        lambda: pa.Table.from_pylist(ROWS).to_reader(),
        lambda: iter(ROWS),
        lambda: (row for row in ROWS),
        lambda: map(dict, ROWS),
        lambda: pd.DataFrame(ROWS).astype({"destination": object}),
    ],
    ids=["polars", "DuckDB", "reader", "iterator", "generator", "map", "pandas"],
)
def test_whatever_has_rows(make):
    """What speaks Arrow's C stream interface or yields dicts is a source."""
    assert read(make()) == VALUES
    assert read(make(), ["n"]) == {"n": [1, 2]}


def test_columns_come_and_change(monkeypatch):
    """A key may come late, and a column has a type of its own in each batch."""
    monkeypatch.setattr("airflow_provider_sms.recipients.memory.BATCH_ROWS", 1)
    assert read(iter([{"a": 1}, {"b": "x"}, {"a": 2.5}])) == {"a": [1, None, 2.5], "b": [None, "x", None]}
    assert read(iter([{"a": 1}, {"a": None}, {"a": "x"}, {"a": 2**60}])) == {"a": [1, None, "x", 2**60]}


def test_lists_in_columns(monkeypatch):
    """A column of lists, which no message can use, is no obstacle; beside text it is refused."""
    rows = [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}]
    assert read(iter(rows), ["a"]) == {"a": [1, 2]}
    with pytest.raises(
        SourceError, match="list_iterator: no column can be made of the values of 'a', which are of type list, str;"
    ):
        read(iter([{"a": ["secret"]}, {"a": "secret"}]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"message": "{tags}"}, "message: column 'tags' is of type TYPE, which has no form as text"),
        ({"message": "{27820000001}"}, r"message: column '2782\*{5}01' is of type TYPE, which has"),
        ({"message": None, "content_column": "who"}, "content_column: column 'who' is of type TYPE"),
        ({"message": "Hi", "key_columns": ["who"]}, "key_columns: 'who' is of type TYPE, which cannot"),
        ({"message": "Hi", "destination_column": "who"}, "destination_column: 'who' is of type TYPE; phone"),
    ],
    ids=["template", "number", "text", "key", "destination"],
)
@pytest.mark.parametrize("make", [pl.DataFrame, lambda rows: pa.Table.from_pylist(rows).to_reader(), iter])
def test_columns_that_nest_are_named(make, arguments, words):
    """The error names the column, and no type that its values do not have; a name that is a number is masked."""
    rows = [{"destination": "27820000001", "tags": ["x"], "who": {"name": "Ann"}, "27820000001": ["x"]}]
    with pytest.raises(ColumnError, match=words.replace("TYPE", "(large_list|list|struct).*")):
        Composer(**{"content_column": None, **arguments}).check(first_schema(make(rows)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: iter([("27820000001",)]), "an iterator of recipients yields dicts, one for each row, not tuple"),
        (lambda: iter(["27820000001"]), "an iterator of recipients yields dicts, one for each row, not str"),
        (lambda: iter([{"destination": "27820000001"}] * 10_001 + [None]), r"not NoneType \(row 10001\)"),
        (lambda: iter([{1: "27820000001"}]), "the keys of the dicts are column names"),
        (lambda: iter([{}, {}]), "there are rows, but no columns"),
        (lambda: pa.chunked_array([["27820000001"]]), "ChunkedArray: its Arrow stream cannot be read as a table"),
        (lambda: pl.DataFrame(ROWS)["destination"], "Series: its Arrow stream cannot be read as a table"),
        (lambda: pa.table([["27820000001"], [1]], names=["a", "a"]).to_reader(), "more than one column is named 'a'"),
    ],
    ids=["tuples", "numbers", "a later row", "keys", "nothing", "no table", "a column", "duplicates"],
)
def test_other_streams(make, words):
    """What is no table is refused in words that show nothing of it."""
    with pytest.raises(SourceError, match=words) as caught:
        read(make())
    assert "2782" not in str(caught.value)


def test_a_producer_that_fails():
    """An error of a user's own generator is the user's to see."""

    def rows():
        yield ROWS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read(rows())


def test_a_stream_that_breaks():
    """The words of a broken stream may quote a row, so only the kind of its error is told."""

    def batches():
        yield pa.RecordBatch.from_pydict({"a": ["x"]})
        raise pa.ArrowInvalid("27820000001")

    with pytest.raises(SourceError, match="RecordBatchReader: its Arrow stream cannot be read as a table by") as caught:
        read(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.string())]), batches()))
    assert "2782" not in str(caught.value)
    assert caught.value.__cause__ is None
