from __future__ import annotations

import pyarrow as pa
import pytest
from support.tables import read, write

from airflow_provider_sms.recipients.sources import open_source


@pytest.mark.parametrize("form", [str, lambda path: path, lambda path: f"file://{path}"], ids=["str", "Path", "URI"])
def test_a_file(tmp_path, form):
    """A Parquet file may be named by a string, a path object or a URI."""
    path = write(tmp_path / "a.parquet", a=[1, 2], b=["x", None])
    source = open_source(form(path))
    assert source.schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert source.describe() == f"{form(path)} (1 Parquet file)"
    assert read(form(path)) == {"a": [1, 2], "b": ["x", None]}


def test_a_list_of_paths(tmp_path):
    """A list of paths, of any kind, is all of them in the order given."""
    second, first = write(tmp_path / "b.parquet", a=[1]), write(tmp_path / "a" / "a.parquet", a=[2])
    source = open_source([second, str(first.parent)])
    assert source.describe() == f"{second}, {first.parent} (2 Parquet files)"
    assert read((second, str(first.parent), f"{tmp_path}/b*")) == {"a": [1, 2, 1]}


def test_a_long_list_is_described_shortly(tmp_path):
    """A log line does not list hundreds of files."""
    path = write(tmp_path / "a.parquet", a=[1])
    assert open_source([path] * 5).describe() == f"{path}, {path}, {path} and 2 more (5 Parquet files)"
