from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from types import SimpleNamespace

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import read, write

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.columns import field_of
from airflow_provider_sms.recipients.sources import open_source


def write_values(path, values, **options):
    pq.write_table(pa.table({"a": values}), path, **options)
    return path


def values_of(batches):
    return [value for batch in batches for value in batch["a"].to_pylist()]


def test_many_small_files(tmp_path):
    """Files of a few rows each are read in the order of their names."""
    for n in range(100):
        write_values(tmp_path / f"{n:03}.parquet", [f"{n}.{row}" for row in range(n % 4)])
    assert values_of(open_source(tmp_path).batches(["a"])) == [f"{n}.{row}" for n in range(100) for row in range(n % 4)]


class Storage:
    """The local filesystem as one that is not local, which keeps what it opened and by which thread."""

    def __init__(self, opening=lambda: None, **attributes):
        self.opening, self.opened, self.threads = opening, [], set()
        self.__dict__.update(attributes)

    def open(self, path, mode):
        self.threads.add(threading.get_ident())
        self.opening()
        self.opened.append(fsspec.filesystem("file").open(path, mode))
        return self.opened[-1]

    def __getattr__(self, name):
        return getattr(fsspec.filesystem("file"), name)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow", "jsonl"])
def test_a_reader_that_stops_early(tmp_path, suffix):
    """Who stops early closes the file that was being read, and opens no other."""
    frame = pd.DataFrame({"a": range(100)})
    writers = {
        "parquet": frame.to_parquet,
        "arrow": frame.to_feather,
        "jsonl": lambda path: frame.to_json(path, orient="records", lines=True),
    }
    for n in range(3):
        writers.get(suffix, frame.to_csv)(tmp_path / f"{n}.{suffix}")
    storage = Storage(async_impl=False)
    batches = open_source(SimpleNamespace(fs=storage, path=str(tmp_path))).batches(["a"])
    opened = len(storage.opened)
    next(batches)
    if suffix != "jsonl":  # whose rows of many files may be one batch
        assert [file.closed for file in storage.opened] == [True] * opened + [False]
    batches.close()
    assert all(file.closed for file in storage.opened)


def test_footers_of_an_object_store(tmp_path):
    """Footers that are far away are read side by side, and the rows are in order all the same."""
    for n in range(8):
        write_values(tmp_path / f"{n}.parquet", [n])
    meeting = threading.Barrier(4, timeout=20)
    storage = Storage(meeting.wait, async_impl=True)
    source = open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert len(storage.threads) >= 4
    storage.opening = lambda: None
    assert values_of(source.batches()) == list(range(8))


def test_footers_of_a_single_connection(tmp_path):
    """A storage that does not say that it takes several requests at once gets one after the other."""
    for n in range(8):
        write_values(tmp_path / f"{n}.parquet", [n])
    storage = Storage(async_impl=False)
    open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert storage.threads == {threading.get_ident()}


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


def test_a_file_that_lacks_a_column(tmp_path):
    """A file that lacks a needed column is named before any row is read, rather than its rows being invalid."""
    write(tmp_path / "1.parquet", a=[1], b=[2])
    path = write(tmp_path / "2.parquet", a=[3])
    assert read(tmp_path, ["a"]) == {"a": [1, 3]}
    with pytest.raises(ColumnError, match=r"has no column 'b'") as caught:
        next(open_source(tmp_path).batches(check=lambda schema: field_of(schema, "b", "message")))
    assert str(caught.value).startswith(str(path))


def test_a_file_that_vanishes(tmp_path):
    """A file that is removed after its header was read is an error, and its rows are not just left out."""
    path = write(tmp_path / "a.parquet", a=[1])
    source = open_source(path)
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(source.batches())


def test_duplicate_columns(tmp_path):
    """A file in which two columns have one name is an error."""
    path = write(tmp_path / "a.parquet", pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(SourceError, match=f"^source: {path}: more than one column is named 'a'"):
        read(path)


def test_text_that_is_not_utf8(tmp_path):
    """Text that is not UTF-8, which Parquet does not rule out, is an error that names file and column."""
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    path = write(tmp_path / "a.parquet", name=broken)
    with pytest.raises(SourceError, match="'name' holds text that is not UTF-8") as caught:
        read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(SourceError, match=r"'2782\*{5}01' holds text that is not UTF-8"):
        read(write(tmp_path / "b.parquet", **{"27820000001": broken}))
