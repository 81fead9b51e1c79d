from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.tables import read, write

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.recipients.sources import open_source

NUMBERS_ONLY = "a list of phone numbers may hold nothing else, no template either, and element "


@pytest.mark.parametrize("form", ["{}", "file://{}", Path, "a.parquet"])
def test_a_file(tmp_path, monkeypatch, form):
    """A Parquet file may be named by a string, also a relative path, a path object or a URI."""
    path = write(tmp_path / "a.parquet", a=[1, 2], b=["x", None])
    monkeypatch.chdir(tmp_path)
    source = form.format(path) if isinstance(form, str) else form(path)
    assert open_source(source).description == f"{source} (1 Parquet file)"
    assert read(source) == {"a": [1, 2], "b": ["x", None]}


def test_a_list_of_paths(tmp_path):
    """A list of paths, of any kind, is all of them in the order given."""
    second, first = write(tmp_path / "b.parquet", a=[1]), write(tmp_path / "a" / "a.parquet", a=[2])
    source = open_source([second, str(first.parent)])
    assert source.description == f"{second}, {first.parent} (2 Parquet files)"
    assert read((second, str(first.parent), f"{tmp_path}/b*")) == {"a": [1, 2, 1]}
    assert open_source([second] * 25).description.endswith(f"{second} and 5 more (25 Parquet files)")


@pytest.mark.parametrize(
    ("numbers", "rows"),
    [
        (["27820000001", "+27 82 000 0002"], ["27820000001", "+27 82 000 0002"]),
        (("27820000001", None, "082"), ["27820000001", None, "082"]),
        ("27820000001", ["27820000001"]),
        ([27820000001, 27820000002], [27820000001, 27820000002]),
        ([np.int64(27820000001)], [27820000001]),  # as a list of a column of pandas holds
        ([np.str_("27820000001")], ["27820000001"]),
    ],
)
def test_numbers_are_a_table_of_one_column(numbers, rows):
    """They keep their digits, and a log shows how many there are."""
    source = open_source(numbers, column="mobile")
    assert [batch.to_pydict() for batch in source.batches()] == [{"mobile": rows}]
    assert source.description == f"list of {counted(len(rows), 'row')}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (["27820000001", "people.parquet"], NUMBERS_ONLY),
        (["{{ 27820000001 }}", "27820000002"], NUMBERS_ONLY),
        ([{"destination": "27820000003"}, "27820000001"], NUMBERS_ONLY),
        ([True, "27820000001"], NUMBERS_ONLY),
        ("27820000001x", "2782*****01x: there is no such file or directory"),
        (["Ann 27820000001", "Ben"], "Ann 2782*****01: there is no such file or directory"),
        ([1, "a"], "a list of recipients must hold one kind of element: paths, dicts or numbers, not int, str"),
    ],
    ids=str,
)
def test_an_error_names_the_argument_and_shows_no_number(source, words):
    """What was taken for a path may be a number."""
    with pytest.raises(SourceError) as caught:
        open_source(source, argument="suppress")
    assert str(caught.value).startswith(f"suppress: {words}")
    assert (caught.value.__cause__, "27820000001" in str(caught.value)) == (None, False)


EMPTY = [
    *([], (), iter(()), pd.DataFrame(), pd.DataFrame({"destination": []})),
    *(pa.table({}), pa.table({"destination": []}).to_reader()),
]


@pytest.mark.parametrize("source", [*EMPTY, "", "\n\n"], ids=lambda source: type(source).__name__)
def test_a_source_that_ends_at_once_has_no_rows(tmp_path, source):
    """It is a table without rows, and one that has not even columns lacks none."""
    if isinstance(source, str):
        (tmp_path / "people.jsonl").write_text(source)
        source = tmp_path / "people.jsonl"
    assert list(open_source(source).batches(["destination"])) == []


def test_rows_without_columns_are_no_empty_list():
    """They are rows: without their column nobody can be texted, and none is lost silently."""
    rows = pa.table({"destination": ["27820000001"]}).select([])
    with pytest.raises(ColumnError, match="has no column 'destination'"):
        list(open_source(rows).batches(["destination"]))
