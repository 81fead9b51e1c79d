from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
from support.tables import Storage, read, write

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.columns import field_of
from airflow_provider_sms.recipients.sources import open_source


@pytest.mark.parametrize("end", ["early", "whole", "error"])
@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow", "jsonl"])
def test_each_file_is_opened_once_and_closed(tmp_path, suffix, end):
    """One after the other; who stops early opens no other file, and after an error none stays open."""
    frame = pd.DataFrame({"a": range(100)})
    writers = {
        "parquet": frame.to_parquet,
        "arrow": frame.to_feather,
        "jsonl": lambda path: frame.to_json(path, orient="records", lines=True),
    }
    for n in range(3):
        writers.get(suffix, frame.to_csv)(tmp_path / f"{n}.{suffix}")
    if end == "error":
        (tmp_path / f"2.{suffix}").write_bytes(b"\xff\xff")
    storage = Storage()
    batches = open_source(SimpleNamespace(fs=storage, path=str(tmp_path))).batches(["a"])
    if end == "error":
        with pytest.raises(SourceError, match=rf"^source: {tmp_path}/2\.{suffix}: "):
            list(batches)
    elif end == "whole":
        assert sum(map(len, batches)) == 300
    else:
        next(batches)
        batches.close()
    # The rows of many JSON files may be one batch.
    assert len(storage.opened) == (1 if end == "early" and suffix != "jsonl" else 3)
    assert all(file.closed for file in storage.opened)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1], pa.int32()), pa.array([2**53 + 1])),
        (pa.array([2**53 + 1]), pa.array([1.5])),
        (pa.nulls(1), pa.array(["x"])),
        (pa.array(["x"]), pa.array([5])),
        (pa.array(["x"]), pa.array(["y"], pa.large_string())),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("10.25")])),
        (pa.array([True]), pa.array([dt.date(2025, 1, 1)])),
    ],
    ids=lambda value: str(value.type),
)
def test_each_file_has_types_of_its_own(tmp_path, one, other):
    """Files of one table may hold a column in different types, as exports of different days do."""
    write(tmp_path / "1.parquet", a=one)
    write(tmp_path / "2.parquet", a=other)
    assert read(tmp_path)["a"] == [*one.to_pylist(), *other.to_pylist()]


@pytest.mark.parametrize("rows", [[], [3]])
def test_a_file_that_lacks_a_column(tmp_path, rows):
    """It is named, rather than its rows being invalid, also where it has none."""
    write(tmp_path / "1.parquet", a=[1], b=[2])
    path = write(tmp_path / "2.parquet", a=pa.array(rows, pa.int64()))
    assert read(tmp_path, ["a"]) == {"a": [1, *rows]}
    with pytest.raises(ColumnError, match=rf"^{path}: message: the source has no column 'b'"):
        list(open_source(tmp_path).batches(check=lambda schema: field_of(schema, "b", "message")))


def test_a_file_that_vanishes(tmp_path):
    """A file that is removed after it was listed is an error, and its rows are not just left out."""
    path = write(tmp_path / "a.parquet", a=[1])
    source = open_source(path)
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(source.batches())


def test_text_that_is_not_utf8(tmp_path):
    """Text that is not UTF-8, which Parquet does not rule out, is an error that names file and column."""
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    path = write(tmp_path / "a.parquet", name=broken)
    with pytest.raises(SourceError, match=f"^source: {path}: column 'name' holds text that is not UTF-8"):
        read(path)
    with pytest.raises(SourceError, match=r"'2782\*{5}01' holds text that is not UTF-8"):
        read(write(tmp_path / "b.parquet", **{"27820000001": broken}))
