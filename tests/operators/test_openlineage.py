from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import Asset, ObjectStoragePath

from airflow_provider_sms.operators.openlineage import datasets
from airflow_provider_sms.operators.sms import BulkSmsOperator, SqlSource


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("/data/people.parquet", [("file", "/data/people.parquet")]),
        (Path("/data/people"), [("file", "/data/people")]),
        ("file:///data/people.csv", [("file", "/data/people.csv")]),
        ("people/*.parquet", [("file", f"{Path.cwd()}/people/*.parquet")]),
        ("s3://my_aws@bucket/day=1/*.parquet", [("s3://bucket", "day=1/*.parquet")]),
        ("gcs://bucket/people.csv", [("gs://bucket", "people.csv")]),
        ("s3://bucket", [("s3://bucket", "/")]),
        ("https://files.example.com/p.csv?sig=secret", [("https://files.example.com", "p.csv")]),
        (ObjectStoragePath("file:///data/p.csv"), [("file", "/data/p.csv")]),
        (Asset("s3://bucket/people.csv"), [("s3://bucket", "people.csv")]),
        (["/a.csv", "s3://b/c.csv"], [("file", "/a.csv"), ("s3://b", "c.csv")]),
        ("~/people.csv", [("file", str(Path.home() / "people.csv"))]),
        (None, []),
    ],
    ids=str,
)
def test_paths_are_named_as_openlineage_names_them(place, names):
    """By store and key, without connections and signatures."""
    assert datasets(place) == names


@pytest.mark.parametrize(
    "rows",
    [[{"destination": "27820000001"}], pd.DataFrame({"destination": ["27820000001"]}), "[{'destination': '2782'}]"],
    ids=["list", "frame", "text"],
)
def test_rows_in_memory_are_no_dataset(rows):
    """They have no name, and their numbers are nobody's business."""
    assert datasets(BulkSmsOperator(task_id="send", source=rows, message="Hi").source) == []


def test_the_provider_gets_the_files_and_the_report():
    """OpenLineage's own extractor finds the source, the report, and the assets that the task declares."""
    from airflow.providers.openlineage.extractors.base import DefaultExtractor

    task = BulkSmsOperator(
        task_id="send",
        source="/data/a.csv",
        message="Hi",
        report="s3://my_aws@bucket/report.parquet",
        inlets=[Asset("file:///data/a.csv"), Asset("file:///data/b.csv")],
        outlets=[Asset("file:///data/c.csv")],
    )
    extractor = DefaultExtractor(task)
    for lineage in (extractor.extract(), extractor.extract_on_complete(None), extractor.extract_on_failure(None)):
        assert [(each.namespace, each.name) for each in lineage.inputs] == [
            ("file", "/data/a.csv"),
            ("file", "/data/b.csv"),
        ]
        assert [(each.namespace, each.name) for each in lineage.outputs] == [
            ("s3://bucket", "report.parquet"),
            ("file", "/data/c.csv"),
        ]


def test_the_provider_gets_nothing_of_rows_in_memory():
    """No dataset, so that it looks at what the task declares."""
    task = BulkSmsOperator(task_id="send", source=[{"destination": "27820000001"}], message="Hi")
    lineage = task.get_openlineage_facets_on_start()
    assert (lineage.inputs, lineage.outputs) == ([], [])


def test_the_query_is_a_facet(tmp_path, airflow_home, monkeypatch):
    """Lineage has the statement with its numbers masked, the tables that it names, and no parameter."""
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection, connection:
        connection.execute("CREATE TABLE people (destination TEXT)")
    monkeypatch.setenv(
        "AIRFLOW_CONN_PEOPLE_DB", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "people.db")})
    )
    query = "SELECT destination FROM people WHERE destination <> '27820000001' AND name = ?"
    source = SqlSource("people_db", query, ["Thandeka"])
    task = BulkSmsOperator(task_id="send", source=source, message="Hi", report="s3://bucket/report.parquet")
    lineage = task.get_openlineage_facets_on_start()
    assert lineage.job_facets["sql"].query == query.replace("27820000001", "2782*****01")
    assert [each.name for each in lineage.outputs] == ["report.parquet"]
    assert "Thandeka" not in str(lineage)
    assert "27820000001" not in str(lineage)


def test_a_query_whose_connection_is_missing_has_a_facet():
    """Lineage fails no task: without the connection there is the statement alone."""
    task = BulkSmsOperator(task_id="send", source=SqlSource("nowhere", "SELECT 1 FROM people"), message="Hi")
    lineage = task.get_openlineage_facets_on_start()
    assert (lineage.inputs, lineage.job_facets["sql"].query) == ([], "SELECT 1 FROM people")
