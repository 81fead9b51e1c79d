from __future__ import annotations

import copy
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from airflow.models.asset import AssetModel, TaskInletAssetReference
from airflow.providers.common.compat.sdk import AirflowException, Asset
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.hidden import Rows, located, redacted_source, with_assets
from airflow_provider_sms.operators.sms import BulkSmsOperator


@pytest.mark.parametrize(
    "source",
    [
        *("a.parquet", Path("a.parquet"), ["a.parquet", "b.parquet"], None, "20260131"),
        *("./(old)/people.parquet", "\n{% if a %}\n{{ b }}\n{% endif %}", ["./[ab].parquet", "c"]),
    ],
    ids=str,
)
def test_paths_are_shown(source):
    """Where rows are is no secret: a path may have brackets, if not at its beginning, and a template several lines."""
    assert redacted_source(source) == source


class Relation:
    """Rows that count themselves by a query, as those of DuckDB do: a source is shown wherever a DAG is parsed."""

    def __len__(self):
        raise AssertionError

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError


ROWS = [{"destination": "27820000001"}]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (TABLE.to_pandas(), "DataFrame"),
        (TABLE, "Table"),
        (ROWS, "list of 1 row"),
        ([], "list of 0 rows"),
        (TABLE.to_pydict(), "dict"),
        (["27820000001", "(082) 000-0002"], "list of 2 rows"),
        (("27820000001", "people.parquet"), "tuple of 2 rows"),
        ([27820000001], "list of 1 row"),
        (iter(ROWS), "list_iterator"),
        (TABLE.to_reader(), "RecordBatchReader"),
        (({"a": n} for n in range(2)), "generator"),
        (Relation(), "Relation"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_rows_are_counted_not_shown(rows, shown):
    """Of rows in memory, Airflow sees how many there are; they are wrapped once, never copied, and read as they are."""
    wrapped = redacted_source(rows)
    assert isinstance(wrapped, Rows)
    assert {str(wrapped), repr(wrapped), wrapped.serialize()} == {shown}
    assert redacted_source(wrapped) is copy.deepcopy(wrapped) is wrapped
    assert located(wrapped) is wrapped.data is rows


@pytest.mark.parametrize(
    "make", [pd.DataFrame, lambda columns: duckdb.from_arrow(pa.table(columns))], ids=["frame", "relation"]
)
def test_rows_with_columns_that_are_called_as_a_path_has_them(make):
    """A table has an attribute for each of its columns, and is no path if one of them is called fs."""
    rows = make({"destination": ["27820000001"], "fs": ["Ann"], "path": ["x"], "template_fields": ["y"]})
    task = BulkSmsOperator(task_id="send", source=rows, suppress=rows, message="Hi {fs}")
    assert (type(task.source), type(task.suppress)) == (Rows, Rows)
    assert "27820000001" not in str(task.source)


WRITTEN_OUT = {
    "list": str([{"destination": "27820000001", "name": "Ann"}]),
    "tuple": str(({"destination": "27820000001", "name": "Ann"},)),
    "dict": str({"destination": ["27820000001"], "name": ["Ann"]}),
    "frame": str(pd.DataFrame({"destination": ["27820000001"], "name": ["Ann"]})),
    "table": str(pa.table({"destination": ["27820000001"], "name": ["Ann"]})),
    "list of one number": str(["27820000001"]),
    "list of numbers": str(["27820000001", "27820000002"]),
    "numbers": "27820000001, 27820000002",
    "numbers and blanks": "27820000001 27820000002",
}


BARE = ("27820000001, 27820000002", "27820000001 27820000002")
"""In a list, an item is a row, and this one has no number."""


@pytest.mark.parametrize("around", ["{}", "\n  {}\n"], ids=["alone", "among blanks"])
@pytest.mark.parametrize("written", WRITTEN_OUT.values(), ids=WRITTEN_OUT)
def test_rows_that_a_template_writes_out_are_not_shown(written, around):
    """Whatever type they were of: the error says how to pass them, and quotes none of them."""
    text = around.format(written)
    of_lists = () if written in BARE else ([text], ["people.parquet", text])
    for source in (text, *of_lists):
        wrapped = redacted_source(source)
        assert (type(wrapped), str(wrapped)) == (Rows, "str")
        with pytest.raises(InputError, match=r"^suppress was rendered into .*\(suppress=task\.output\)") as caught:
            located(wrapped, "suppress")
        assert "Ann" not in str(caught.value)


def test_a_number_alone_is_a_row():
    """It is the most natural first try, and no path."""
    wrapped = redacted_source("+27 82 000 0001")
    assert (str(wrapped), wrapped.data) == ("list of 1 row", ["+27 82 000 0001"])


USER = "my_google@"


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("file:///data/people.parquet", "/data/people.parquet"),
        ("file:///data/my%20people/", "/data/my people"),
        ("file://localhost/data/people", "/data/people"),
        ("/data/people.parquet", "/data/people.parquet"),
        (f"gs://{USER}bucket/people-*.parquet", f"gs://{USER}bucket/people-*.parquet"),
    ],
)
def test_an_asset_is_where_its_uri_points(uri, place):
    """A file URI is a path on this machine (RFC 8089), any other stays one; alone and in a list."""
    assert (redacted_source(Asset(uri=uri)), redacted_source(["x", Asset(uri=uri)])) == (place, ["x", place])


@pytest.mark.parametrize(
    "error", [None, ValueError("Invalid endpoint"), ImportError("no s3fs"), AirflowException("no s3")]
)
def test_a_file_system_that_cannot_be_made_has_its_reason(error, monkeypatch):
    """Such as a wrong endpoint, which the words do not say; of a scheme that nobody knows they say all there is."""

    def refuse(uri):
        raise error

    if error is not None:
        monkeypatch.setattr("airflow_provider_sms.execution.hidden.ObjectStoragePath", refuse)
    with pytest.raises(InputError, match=r"^suppress: no file system for hdfs://") as refused:
        located("hdfs://bucket/people.csv", "suppress")
    assert refused.value.__cause__ is error


def test_an_asset_is_an_inlet_once():
    """What the DAG names among the inlets, too, is there once, and all else stays."""
    one, other = Asset(uri="file:///data/one"), Asset(uri="file:///data/other")
    assert with_assets([one], [one, "path", other]) == [one, other]
    assert with_assets([one], None) == [one]


def test_the_people_of_an_asset_are_texted(send, people, witnessed):
    """An asset is a source as its path is, which Airflow shows, and an inlet of the task in the graph of assets."""
    asset = Asset(uri=f"file://{people(3)}")
    ran = send(asset)
    assert (ran.state, ran.summary["accepted"], ran.rendered["source"]) == ("success", 3, people(3))
    query = select(TaskInletAssetReference.task_id, AssetModel.uri).join_from(TaskInletAssetReference, AssetModel)
    with create_session() as session:
        read = session.execute(query.where(TaskInletAssetReference.dag_id == ran.summary["campaign"].partition("/")[0]))
        assert read.all() == [("send", asset.uri)]
    again = send([asset, people(5)], campaign=ran.summary["campaign"])
    assert (again.summary["accepted"], again.summary["already_sent"], again.summary["duplicate"]) == (2, 3, 3)
    assert again.rendered["source"] == [people(3), people(5)]
    assert set(witnessed().values()) == {1}
