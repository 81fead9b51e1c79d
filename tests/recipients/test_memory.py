from __future__ import annotations

import uuid
from decimal import Context, Decimal, FloatOperation, localcontext
from enum import Enum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.sources import open_source

NAN = float("nan")


def rows_of(source, columns=None):
    """Read a whole source as columns of Python values."""
    batches = list(open_source(source).batches(columns))
    return pa.Table.from_batches(batches).to_pydict() if batches else {}


def test_a_list_of_dicts():
    """A list of dicts is a table; a key that a dict lacks is null there."""
    source = open_source([{"destination": "27821234567", "name": "Ann"}, {"name": "Bob", "age": 5}])
    assert source.schema.names == ["destination", "name", "age"]
    assert source.describe() == "list of 2 rows"
    expected = {"destination": ["27821234567", None], "name": ["Ann", "Bob"], "age": [None, 5]}
    assert expected == rows_of([{"destination": "27821234567", "name": "Ann"}, {"name": "Bob", "age": 5}])


@pytest.mark.parametrize("source", [[], ()])
def test_an_empty_list(source):
    """An empty list is a source of no rows, whatever columns are asked for."""
    opened = open_source(source)
    assert opened.schema.names == []
    assert list(opened.batches(["destination"])) == []


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
    assert rows_of(source) == {"destination": MIXED_AS_TEXT}


def test_a_column_that_begins_with_numbers():
    """It does not matter which kind of value comes first."""
    assert rows_of([{"a": 1}, {"a": "x"}]) == {"a": ["1", "x"]}
    assert rows_of([{"a": True}, {"a": "x"}]) == {"a": ["True", "x"]}
    assert rows_of([{"a": 2**70}, {"a": 1}]) == {"a": [str(2**70), "1"]}


@pytest.mark.parametrize("value", [object(), 1j, "secret\ud83d"])
@pytest.mark.parametrize("make", [lambda rows: rows, pd.DataFrame], ids=["dicts", "DataFrame"])
def test_values_that_no_column_can_hold(value, make):
    """A column of which no column can be made is named, and its values are not."""
    rows = [{"name": "Thandi", "thing": "secret"}, {"name": "Sipho", "thing": value}]
    if make is pd.DataFrame:
        rows = pd.DataFrame({"name": ["Thandi", "Sipho"], "thing": pd.Series(["secret", value], dtype=object)})
    with pytest.raises(SourceError, match="'thing'") as caught:
        open_source(rows)
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
    for source in (rows, iter(rows), {"status": [Status.PAID, *others]}, pd.DataFrame(rows)):
        assert rows_of(source)["status"][0] == "paid"


def test_floats_beside_texts_need_no_decimals():
    """A DAG's file may forbid that floats become decimals, which is a way to find mistakes in sums of money."""
    with localcontext(Context(traps=[FloatOperation])):
        assert rows_of([{"a": 1.5}, {"a": "x"}]) == {"a": ["1.5", "x"]}


def test_a_column_whose_name_is_a_number_is_masked():
    """A table without names has a recipient in their place."""
    with pytest.raises(SourceError, match=r"no column can be made of the values of '2782\*{5}01', which are of type"):
        open_source([{"27820000001": "x"}, {"27820000001": 1j}])
    with pytest.raises(SourceError, match=r"need the same number of values, but '2782\*{5}01' has 1, 'x' has 2"):
        open_source({"27820000001": ["x"], "x": [1, 2]})


@pytest.mark.parametrize("other", [np.float32(5), np.int64(5), np.bool_(1), np.timedelta64(1, "s"), "x"], ids=repr)
def test_kinds_of_numpy_beside_each_other(other):
    """Arrow ends the process for some of them, so it is not asked to make one column of two kinds."""
    with pytest.raises(SourceError, match="no column can be made of the values of 'x', which are of type"):
        open_source([{"x": np.datetime64("2026-01-01")}, {"x": other}])


@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT, float("nan")], ids=repr)
def test_floats_of_numpy_beside_nulls(null):
    """Whatever pandas writes for no value is none."""
    assert rows_of([{"x": np.float32(0.5)}, {"x": null}]) == {"x": [0.5, None]}


def test_series_of_one_table_in_another_order_are_refused():
    """By place they would give one person's text to another; a DataFrame of them matches them by their index."""
    people = pd.DataFrame({"number": ["1", "2"], "name": ["Bob", "Ann"]})
    columns = {"destination": people["number"], "first_name": people.sort_values("name")["name"]}
    words = "'destination' and 'first_name' have different indexes, so values of different people could come together"
    with pytest.raises(SourceError, match=words):
        open_source(columns)
    matched = {"destination": ["1", "2"], "first_name": ["Bob", "Ann"]}
    assert rows_of(pd.DataFrame(columns)) == matched
    assert rows_of({"destination": people["number"], "first_name": people["name"]}) == matched
    assert rows_of({"destination": people["number"], "first_name": ["Bob", "Ann"]}) == matched


def test_rows_without_columns():
    """Rows that hold nothing are an error: they would be lost in silence."""
    for source in ([{}, {}], pd.DataFrame(index=range(3))):
        with pytest.raises(SourceError, match="no columns"):
            open_source(source)


def test_keys_that_are_no_names():
    """The keys of dicts are column names, so they are text."""
    with pytest.raises(SourceError, match="must be text"):
        open_source([{1: "x"}])


def test_a_dataframe():
    """A DataFrame is a table without its index, and describes itself by its size."""
    frame = pd.DataFrame(
        {"destination": [27821234567, 27821234568], "name": ["Ann", None], "owed": [1.5, NAN]}, index=[7, 8]
    )
    source = open_source(frame)
    assert source.describe() == "DataFrame of 2 rows × 3 columns"  # noqa: RUF001 - a multiplication sign is meant
    expected = {"destination": [27821234567, 27821234568], "name": ["Ann", None], "owed": [1.5, None]}
    assert expected == rows_of(frame)


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
    assert {"x": values} == rows_of(pd.DataFrame({"x": series}))


def test_pandas_times():
    """Times stay times, with their zone, and NaT is null."""
    frame = pd.DataFrame({"at": pd.to_datetime(["2025-03-01 09:30", None]).tz_localize("UTC")})
    assert pa.types.is_timestamp(open_source(frame).schema.field("at").type)
    assert rows_of(frame)["at"][1] is None


def test_dataframe_columns_that_are_numbers():
    """Column names that are no text become text, as a template can only name text."""
    assert rows_of(pd.DataFrame([[1, 2]])) == {"0": [1], "1": [2]}


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["0", 0]),
        pa.table([[1], [2]], names=["a", "a"]),
    ],
    ids=["DataFrame", "text and number", "Table"],
)
def test_duplicate_columns(source):
    """Two columns of one name are an error that names it."""
    with pytest.raises(SourceError, match="more than one column is named"):
        open_source(source)


def test_a_name_that_is_a_number_is_masked():
    """A table without the names of its columns may have the same person's number in two of them."""
    with pytest.raises(SourceError, match=r"more than one column is named '2782\*{5}67'"):
        open_source(pa.table([[1], [2]], names=["27821234567"] * 2))


def test_an_empty_dataframe():
    """A DataFrame without rows is a source of none."""
    assert list(open_source(pd.DataFrame({"destination": []})).batches()) == []
    assert list(open_source(pd.DataFrame()).batches(["destination"])) == []


@pytest.mark.parametrize("make", [pa.table, pa.RecordBatch.from_pydict], ids=["Table", "RecordBatch"])
def test_arrow_tables(make):
    """An Arrow table or batch is taken as it is."""
    source = open_source(make({"a": [1, 2], "b": ["x", None]}))
    assert source.describe() == "Table of 2 rows × 2 columns"  # noqa: RUF001 - a multiplication sign is meant
    assert source.schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert rows_of(make({"a": [1, 2], "b": ["x", None]}), ["b"]) == {"b": ["x", None]}


def test_batches():
    """Batches are at most as large as asked, never empty, in order, and start anew with each call."""
    table = pa.concat_tables(
        [pa.table({"a": range(7)}), pa.table({"a": pa.array([], pa.int64())}), pa.table({"a": range(7, 9)})]
    )
    source = open_source(table)
    for _ in range(2):
        batches = list(source.batches(["a"], batch_size=3))
        assert [value for batch in batches for value in batch["a"].to_pylist()] == list(range(9))
        assert all(1 <= len(batch) <= 3 for batch in batches)


def test_columns_are_chosen():
    """Only the columns asked for are in the batches, in that order, each once."""
    source = open_source([{"a": 1, "b": 2, "c": 3}])
    assert next(source.batches(["c", "a", "c"])).schema.names == ["c", "a"]
    with pytest.raises(ColumnError, match="no column 'd'"):
        list(source.batches(["d"]))


def test_text_that_is_not_utf8():
    """Text that is not UTF-8 is an error that names its column, before any of it is used."""
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    with pytest.raises(SourceError, match="'name' holds text that is not UTF-8"):
        list(open_source(pa.table({"name": broken})).batches())


@pytest.mark.parametrize(
    "source",
    [None, 5, {"a.parquet"}, b"a.parquet", uuid.uuid4()],
    ids=lambda s: type(s).__name__,
)
def test_other_objects(source):
    """Anything else is an error that says what would do, and does not show what was given."""
    with pytest.raises(SourceError, match="cannot be read from") as caught:
        open_source(source)
    assert "2782" not in str(caught.value)


@pytest.mark.parametrize("source", [["a.parquet", {"a": 1}], [{"a": 1}, None], [5], [pd.DataFrame()]])
def test_lists_of_other_things(source):
    """A list is one of paths, of dicts or of numbers."""
    with pytest.raises(SourceError, match="must hold one kind of element: paths, dicts or numbers"):
        open_source(source)


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        pd.Series,
        lambda values: pd.Series(values, dtype=object),
        pa.array,
        lambda values: pa.chunked_array([pa.array(values)[:1], pa.array(values)[1:]]),
        lambda values: np.array(values, dtype=object),
    ],
    ids=["list", "tuple", "Series", "object Series", "Array", "ChunkedArray", "ndarray"],
)
def test_a_dict_of_columns(make):
    """A dict of columns is a table, in whichever form each column is."""
    source = open_source({"destination": make(["27820000001", None]), "n": make([1, 2])})
    assert source.describe() == "dict of 2 rows × 2 columns"  # noqa: RUF001 - a multiplication sign is meant
    assert rows_of({"destination": make(["27820000001", None]), "n": make([1, 2])}) == {
        "destination": ["27820000001", None],
        "n": [1, 2],
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            {"destination": "27821234567"},
            "value of 'destination' is of type str.*A single recipient is a list of one dict",
        ),
        ({"destination": {"x": "27821234567"}}, "value of 'destination' is of type dict"),
        ({"destination": 27821234567}, "value of 'destination' is of type int"),
        ({"0831234567": 5}, r"value of '0831\*{5}67' is of type int"),
        ({"a": ["27821234567"], "b": []}, "all columns need the same number of values, but 'a' has 1, 'b' has 0"),
        ({1: ["27821234567"]}, "the keys of the dict are column names"),
    ],
)
def test_a_dict_that_holds_no_columns(source, words):
    """A single recipient, or columns that differ in length, are refused, and no value is shown."""
    with pytest.raises(SourceError, match=words) as caught:
        open_source(source)
    assert "2782" not in str(caught.value)


def test_uuids():
    """A UUID is its text, alone and beside other values."""
    value = uuid.UUID(int=7)
    assert rows_of([{"id": value}]) == rows_of([{"id": str(value)}])
    assert rows_of([{"id": value}, {"id": 1}]) == {"id": [str(value), "1"]}
