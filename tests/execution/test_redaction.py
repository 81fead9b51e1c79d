from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from airflow_provider_sms.execution.redaction import Rows, redacted_source


@pytest.mark.parametrize(
    "source", ["a.parquet", Path("a.parquet"), ["a.parquet", "b.parquet"], ("s3://c@b/a.parquet",), None], ids=str
)
def test_paths_are_shown(source):
    """Where rows are is no secret: Airflow renders and shows paths."""
    assert redacted_source(source) is source


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (pd.DataFrame({"destination": ["27820000001"]}), "DataFrame of 1 rows"),
        (pa.table({"destination": ["27820000001"]}), "Table of 1 rows"),
        ([{"destination": "27820000001"}], "list of 1 rows"),
        ([], "list of 0 rows"),
        ({"destination": "27820000001"}, "dict of 1 rows"),
    ],
    ids=["frame", "table", "list", "empty list", "dict"],
)
def test_rows_are_counted_not_shown(rows, shown):
    """Of rows in memory, Airflow sees how many there are."""
    wrapped = redacted_source(rows)
    assert isinstance(wrapped, Rows)
    assert {str(wrapped), repr(wrapped), wrapped.serialize()} == {shown}
    assert wrapped.data is rows


def test_wrapping_twice_is_wrapping_once():
    """A field that is assigned again stays as it is."""
    wrapped = redacted_source([{"a": 1}])
    assert redacted_source(wrapped) is wrapped
