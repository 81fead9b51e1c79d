from __future__ import annotations

import uuid
from decimal import Context, Decimal, FloatOperation, localcontext
from enum import Enum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.tables import first_schema, read

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.sources import open_source

NAN = float("nan")


def test_a_list_of_dicts():
    """A list of dicts is a table; a key that a dict lacks is null there."""
    source = open_source([{"destination": "27821234567", "name": "Ann"}, {"name": "Bob", "age": 5}])
    assert source.description == "list of 2 rows"
    expected = {"destination": ["27821234567", None], "name": ["Ann", "Bob"], "age": [None, 5]}
    assert expected == read([{"destination": "27821234567", "name": "Ann"}, {"name": "Bob", "age": 5}])


MIXED = [
    "0821234567",
    821234567,
    27821234567.0,
    None,
    NAN,
    pd.NA,
    pd.NaT,
    np.int64(5),
    Decimal("1.50"),
    Decimal("NaN"),
    True,
]
MIXED_AS_TEXT = ["0821234567", "821234567", "27821234567", None, None, None, None, "5", "1.5", None, "True"]


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
    assert read(source) == {"destination": MIXED_AS_TEXT}


@pytest.mark.parametrize("value", [object(), 1j, "secret\ud83d"])
@pytest.mark.parametrize("make", [lambda rows: rows, pd.DataFrame], ids=["dicts", "DataFrame"])
def test_values_that_no_column_can_hold(value, make):
    """A column of which no column can be made is named, and its values are not."""
    rows = [{"name": "Thandi", "thing": "secret"}, {"name": "Sipho", "thing": value}]
    if make is pd.DataFrame:
        rows = pd.DataFrame({"name": ["Thandi", "Sipho"], "thing": pd.Series(["secret", value], dtype=object)})
    with pytest.raises(SourceError, match="'thing'") as caught:
        read(rows)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


class Status(str, Enum):
    """A member is a text, and its own way to write itself names it."""

    PAID = "paid"


@pytest.mark.parametrize("others", [[], [7], [None, True]], ids=str)
def test_members_of_an_enumeration_read_as_their_text(others):
    """Whatever is beside them: with one more row, everybody would be told of Status.PAID."""
    rows = [{"status": value} for value in [Status.PAID, *others]]
    for source in (rows, iter(rows), pd.DataFrame(rows)):
        assert read(source)["status"][0] == "paid"


def test_floats_beside_texts_need_no_decimals():
    """A DAG's file may forbid that floats become decimals, which is a way to find mistakes in sums of money."""
    with localcontext(Context(traps=[FloatOperation])):
        assert read([{"a": 1.5}, {"a": "x"}]) == {"a": ["1.5", "x"]}


def test_a_column_whose_name_is_a_number_is_masked():
    """A table without names has a recipient in their place."""
    with pytest.raises(SourceError, match=r"no column can be made of the values of '2782\*{5}01', which are of type"):
        read([{"27820000001": "x"}, {"27820000001": 1j}])


@pytest.mark.parametrize("other", [np.float32(5), np.int64(5), np.bool_(1), np.timedelta64(1, "s"), "x"], ids=repr)
def test_kinds_of_numpy_beside_each_other(other):
    """Arrow ends the process for some of them, so it is not asked to make one column of two kinds."""
    with pytest.raises(SourceError, match="no column can be made of the values of 'x', which are of type"):
        read([{"x": np.datetime64("2026-01-01")}, {"x": other}])


@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT, float("nan")], ids=repr)
def test_floats_of_numpy_beside_nulls(null):
    """Whatever pandas writes for no value is none."""
    assert read([{"x": np.float32(0.5)}, {"x": null}]) == {"x": ["0.5", None]}


def test_rows_without_columns():
    """Rows that hold nothing are an error: they would be lost in silence."""
    for source in ([{}, {}], pd.DataFrame(index=range(3))):
        with pytest.raises(SourceError, match="no columns"):
            read(source)


def test_keys_that_are_no_names():
    """The keys of dicts are column names, so they are text."""
    with pytest.raises(SourceError, match="must be text"):
        read([{1: "x"}])


def test_a_dataframe():
    """A DataFrame is a table without its index, and describes itself by its size."""
    frame = pd.DataFrame(
        {"destination": [27821234567, 27821234568], "name": ["Ann", None], "owed": [1.5, NAN]}, index=[7, 8]
    )
    source = open_source(frame)
    assert source.description == "DataFrame of 2 rows"
    expected = {"destination": [27821234567, 27821234568], "name": ["Ann", None], "owed": [1.5, None]}
    assert expected == read(frame)


@pytest.mark.parametrize(
    ("series", "values"),
    [
        (pd.Series(["a", None]), ["a", None]),
        (pd.Series(["a", None], dtype=object), ["a", None]),
        (pd.Series(["a", None], dtype="string"), ["a", None]),
        (pd.Series(["a", None], dtype="string[pyarrow]"), ["a", None]),
        (pd.Series(["a", None], dtype="category"), ["a", None]),
        (pd.Series(["a", 1, None], dtype="category"), ["a", "1", None]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (pd.Series([1, None], dtype="int64[pyarrow]"), [1, None]),
        (pd.Series([1, None]), [1.0, None]),
        (pd.Series([1.5, None], dtype="Float64"), [1.5, None]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series([0, 5], dtype="Sparse[int]"), [0, 5]),
        (pd.Series([Decimal("1.50"), None]), [Decimal("1.50"), None]),
        (pd.Series([27821234567, 27821234567.0, None], dtype=object), [27821234567.0, 27821234567.0, None]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_pandas_types(series, values):
    """Every pandas type of text, numbers and categories works, and nothing is null in each."""
    assert {"x": values} == read(pd.DataFrame({"x": series}))


def test_pandas_times():
    """Times stay times, with their zone, and NaT is null."""
    frame = pd.DataFrame({"at": pd.to_datetime(["2025-03-01 09:30", None]).tz_localize("UTC")})
    assert pa.types.is_timestamp(first_schema(frame).field("at").type)
    assert read(frame)["at"][1] is None


def test_dataframe_columns_that_are_numbers():
    """Column names that are no text become text, as a template can only name text."""
    assert read(pd.DataFrame([[1, 2]])) == {"0": [1], "1": [2]}


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["0", 0]),
        pa.table([[1], [2]], names=["27821234567"] * 2),
    ],
    ids=["DataFrame", "text and number", "Table"],
)
def test_duplicate_columns(source):
    """Two columns of one name are an error that names it; a name that is a number is masked."""
    with pytest.raises(SourceError, match=r"more than one column is named '(a|0|2782\*{5}67)'"):
        read(source)


@pytest.mark.parametrize("make", [pa.table, pa.RecordBatch.from_pydict], ids=["Table", "RecordBatch"])
def test_arrow_tables(make):
    """An Arrow table or batch is taken as it is."""
    assert read(make({"a": [1, 2], "b": ["x", None]}), ["b"]) == {"b": ["x", None]}


def test_columns_are_chosen():
    """Only the columns asked for are in the batches, in that order, each once."""
    source = open_source([{"a": 1, "b": 2, "c": 3}])
    assert next(source.batches(["c", "a", "c"])).schema.names == ["c", "a"]
    with pytest.raises(ColumnError, match="no column 'd'"):
        list(source.batches(["d"]))


@pytest.mark.parametrize(
    "source",
    [None, 5, {"a.parquet"}, b"a.parquet", uuid.uuid4()],
    ids=lambda s: type(s).__name__,
)
def test_other_objects(source):
    """Anything else is an error that says what would do, and does not show what was given."""
    with pytest.raises(SourceError, match="cannot be read from") as caught:
        read(source)
    assert "2782" not in str(caught.value)


@pytest.mark.parametrize("source", [["a.parquet", {"a": 1}], [{"a": 1}, None], [5], [pd.DataFrame()]])
def test_lists_of_other_things(source):
    """A list is one of paths, of dicts or of numbers."""
    with pytest.raises(SourceError, match="must hold one kind of element: paths, dicts or numbers"):
        read(source)


def test_uuids():
    """A UUID is its text, alone and beside other values."""
    value = uuid.UUID(int=7)
    assert read([{"id": value}]) == read([{"id": str(value)}])
    assert read([{"id": value}, {"id": 1}]) == {"id": [str(value), "1"]}
