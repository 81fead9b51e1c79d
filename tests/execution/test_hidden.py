from __future__ import annotations

import copy
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from airflow.providers.common.compat.sdk import AirflowException, Asset
from support.airflow import run_task
from support.assets import read_by

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.hidden import Rows, located, redacted_source, with_assets
from airflow_provider_sms.operators.sms import BulkSmsOperator


@pytest.mark.parametrize(
    "source", ["a.parquet", Path("a.parquet"), ["a.parquet", "b.parquet"], ("s3://c@b/a.parquet",), None], ids=str
)
def test_paths_are_shown(source):
    """Where rows are is no secret: Airflow renders and shows paths."""
    assert redacted_source(source) == (list(source) if isinstance(source, tuple) else source)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (pd.DataFrame({"destination": ["27820000001"]}), "DataFrame"),
        (pa.table({"destination": ["27820000001"]}), "Table"),
        ([{"destination": "27820000001"}], "list of 1 row"),
        ([], "list of 0 rows"),
        ({"destination": ["27820000001"]}, "dict"),
        (["27820000001", "082 000 0002"], "list of 2 rows"),
        (("27820000001", "people.parquet"), "tuple of 2 rows"),
        ([27820000001], "list of 1 row"),
        (iter([{"destination": "27820000001"}]), "list_iterator"),
        (pa.table({"destination": ["27820000001"]}).to_reader(), "RecordBatchReader"),
    ],
    ids=[
        "frame",
        "table",
        "list",
        "empty list",
        "dict",
        "numbers",
        "numbers and paths",
        "whole numbers",
        "iterator",
        "reader",
    ],
)
def test_rows_are_counted_not_shown(rows, shown):
    """Of rows in memory, Airflow sees how many there are."""
    wrapped = redacted_source(rows)
    assert isinstance(wrapped, Rows)
    assert {str(wrapped), repr(wrapped), wrapped.serialize()} == {shown}
    assert wrapped.data is rows


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
}


@pytest.mark.parametrize("around", ["{}", "\n  {}\n"], ids=["alone", "among blanks"])
@pytest.mark.parametrize("written", WRITTEN_OUT.values(), ids=WRITTEN_OUT)
def test_rows_that_a_template_writes_out_are_not_shown(written, around):
    """Whatever type they were of: the error says how to pass them, and quotes none of them."""
    text = around.format(written)
    for source in (text, [text], ["people.parquet", text]):
        wrapped = redacted_source(source)
        assert (type(wrapped), str(wrapped)) == (Rows, "str")
        with pytest.raises(InputError, match=r"^suppress was rendered into .*\(suppress=task\.output\)") as caught:
            located(wrapped, "suppress")
        assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    "source", ["./(old)/people.parquet", "\n{% if a %}\n{{ b }}\n{% endif %}", ["./[ab].parquet", "c"]]
)
def test_places_that_look_like_rows_are_shown(source):
    """A name may have brackets, if not at its beginning, and a template may have several lines."""
    assert redacted_source(source) == source


def test_a_number_alone_is_a_row():
    """It is the most natural first try, and no path."""
    wrapped = redacted_source("+27 82 000 0001")
    assert (str(wrapped), wrapped.data) == ("list of 1 row", ["+27 82 000 0001"])
    assert redacted_source("20260131") == "20260131"
    numbers = ["27821234567", "(082) 123-4567"]
    assert redacted_source(numbers).data is numbers


class Relation:
    """Rows that count themselves by a query, as those of DuckDB do."""

    def __len__(self):
        raise AssertionError

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError


def test_rows_are_not_read_to_be_counted():
    """A length that may be a query is not asked for: Airflow asks for the text of a source wherever a DAG is parsed."""
    assert str(redacted_source(Relation())) == "Relation"


def test_rows_are_not_copied():
    """Airflow copies the fields of a task; a generator cannot be copied."""
    wrapped = redacted_source({"a": n} for n in range(2))
    assert copy.deepcopy(wrapped) is wrapped


def test_rows_that_stay_are_read_as_often_as_needed():
    """A list is the same list in each attempt."""
    wrapped = redacted_source([{"a": 1}])
    assert located(wrapped) is located(wrapped) is wrapped.data


def test_wrapping_twice_is_wrapping_once():
    """A field that is assigned again stays as it is."""
    wrapped = redacted_source([{"a": 1}])
    assert redacted_source(wrapped) is wrapped


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


@pytest.mark.parametrize("scheme", ["gopher", "hdfs"])
def test_a_scheme_that_nobody_knows_is_one_error(scheme):
    """Airflow's words behind it would say the same once more, with a traceback."""
    with pytest.raises(InputError, match=f"^suppress: no file system for {scheme}://; is its") as refused:
        located(f"{scheme}://bucket/people.csv", "suppress")
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("error", [ValueError("Invalid endpoint"), ImportError("no s3fs"), AirflowException("no s3")])
def test_a_file_system_that_cannot_be_made_has_its_reason(error, monkeypatch):
    """Such as a wrong endpoint, which the words do not say."""

    def refuse(uri):
        raise error

    monkeypatch.setattr("airflow_provider_sms.execution.hidden.ObjectStoragePath", refuse)
    with pytest.raises(InputError, match="no file system for s3://") as refused:
        located("s3://bucket/people.csv")
    assert refused.value.__cause__ is error


def test_an_asset_is_an_inlet_once():
    """What the DAG names among the inlets, too, is there once, and all else stays."""
    one, other = Asset(uri="file:///data/one"), Asset(uri="file:///data/other")
    assert with_assets([one], [one, "path", other]) == [one, other]
    assert with_assets([one], None) == [one]


@pytest.fixture
def asset(people):
    """An asset that is a Parquet of that many people."""
    return lambda count: Asset(uri=f"file://{people(count)}")


def test_the_people_of_an_asset_are_texted(send, asset, people, witnessed):
    """An asset is a source as its path is, which Airflow shows; also in a list beside paths."""
    ran = send(asset(3), campaign="one")
    assert (ran.state, ran.summary["accepted"], ran.rendered["source"]) == ("success", 3, people(3))
    again = send([asset(3), people(5)], campaign="one")
    assert (again.summary["accepted"], again.summary["already_sent"], again.summary["duplicate"]) == (2, 3, 3)
    assert again.rendered["source"] == [people(3), people(5)]
    assert set(witnessed().values()) == {1}


def test_airflow_knows_that_the_task_reads_the_asset(send, asset):
    """The asset is an inlet of the task in Airflow's database, which the graph of assets is drawn from."""
    ran = send(asset(4))
    assert read_by(ran.summary["campaign"].partition("/")[0]) == [("send", asset(4).uri)]


def test_mapped_tasks_read_an_asset_each(sms_default, ledger_path, asset, witnessed):
    """``expand`` over assets gives one task for each."""

    def make():
        return BulkSmsOperator.partial(task_id="send", message="Hi {first_name}").expand(source=[asset(2), asset(3)])

    run = run_task(make, only=None)
    assert (str(run.state), len(witnessed()), set(witnessed().values())) == ("success", 3, {1})


def test_an_asset_that_another_task_returns_is_read(sms_default, ledger_path, asset, witnessed):
    """What arrives through XCom as an asset is one."""
    from airflow.providers.common.compat.sdk import task

    given = asset(2)

    def make():
        return BulkSmsOperator(task_id="send", source=task(task_id="first")(lambda: given)(), message="Hi")

    ran = run_task(make)
    assert (ran.state, len(witnessed())) == ("success", 2)


def test_a_report_is_not_written_over_an_asset(send, asset, people):
    """The report's path is compared with the asset's own."""
    ran = send(asset(2), report=people(2))
    assert (ran.state, "would be written over the source" in ran.log) == ("failed", True)
    assert len(pd.read_parquet(people(2))) == 2
