from __future__ import annotations

import datetime as dt
import os
from types import SimpleNamespace

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import read, write

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

ROWS = 400_000


def write_values(path, values, **options):
    pq.write_table(pa.table({"a": values}), path, **options)
    return path


def values_of(batches):
    return [value for batch in batches for value in batch["a"].to_pylist()]


@pytest.mark.parametrize("row_group_size", [1, 7, 1000])
def test_row_groups_of_any_size(tmp_path, row_group_size):
    """How the rows lie in row groups does not show."""
    source = open_source(write_values(tmp_path / "a.parquet", range(1000), row_group_size=row_group_size))
    assert values_of(source.batches(["a"])) == list(range(1000))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_row_group_is_not_held(tmp_path, kind):
    """Of a row group only a small part is in memory, however large it is."""
    values = pa.array([f"A text that is long enough to weigh something: {n}" for n in range(ROWS)], kind)
    path = write_values(tmp_path / "a.parquet", values, row_group_size=ROWS, use_dictionary=False, compression="none")
    size = values.nbytes
    del values
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_source(path).batches(["a"]):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < size / 4


def test_times_in_96_bits_keep_their_year(tmp_path):
    """Spark and Hive write times so, and the last day of the year 9999 where there is no end: it is no day of 1816."""
    times = [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2026, 3, 1, 9, 30, 0, 123456), None]  # noqa: DTZ001
    columns = {"a": pa.array(times, pa.timestamp("us")), "b": pa.array(["x", "y", "z", None]).dictionary_encode()}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(tmp_path / "a.parquet").schema.column(0).physical_type == "INT96"
    assert read(tmp_path / "a.parquet") == {"a": times, "b": ["x", "y", "z", None]}


class CountingFile:
    """A file that knows how much of it was read."""

    def __init__(self, file, counts):
        self.file, self.counts = file, counts

    def read(self, *args):
        data = self.file.read(*args)
        self.counts.append(len(data))
        return data

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


class CountingFilesystem:
    """The local filesystem, as one that is not local, counting bytes."""

    def __init__(self):
        self.local, self.counts = fsspec.filesystem("file"), []

    def open(self, path, mode):
        return CountingFile(self.local.open(path, mode), self.counts)

    def __getattr__(self, name):
        return getattr(self.local, name)


def test_only_what_is_needed_is_read(tmp_path):
    """Columns that are not needed are not read, nor are row groups before it is their turn."""
    rows, path = 20_000, tmp_path / "a.parquet"
    wide = pa.array([os.urandom(300) for _ in range(rows)])
    pq.write_table(pa.table({"a": range(rows), "wide": wide}), path, row_group_size=1000, compression="none")
    filesystem = CountingFilesystem()
    source = open_source(SimpleNamespace(fs=filesystem, path=str(path)))
    footer = sum(filesystem.counts)
    batches = source.batches(["a"])
    assert len(next(batches)) == 10_000
    assert sum(1 for _ in batches) == 1
    assert sum(filesystem.counts) < 3 * footer + rows * 20 < path.stat().st_size / 4


def test_names_with_dots(tmp_path):
    """A dot in a name is part of it, and does not reach into another column."""
    path = write(tmp_path / "a.parquet", pa.table({"a": [{"b": 1}], "a.c": [2], "x": [3]}))
    assert read(path, ["a.c"]) == {"a.c": [2]}
    assert read(path, ["a"]) == {"a": [{"b": 1}]}


def test_text_is_text(tmp_path):
    """Categories and wide text, which pandas and others write, are read as plain text."""
    frame = pd.DataFrame({"a": pd.Categorical(["x", None]), "b": pd.array(["y", None], dtype="string")})
    frame.to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path) == {"a": ["x", None], "b": ["y", None]}


@pytest.mark.parametrize("name", ["a.parquet", "part-0"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"destination,name\n27821234567,Thandi\n", b"\0" * 100])
def test_a_file_that_is_not_parquet(tmp_path, name, content):
    """A file of another format, an empty one too, is an error that names it and quotes nothing from it."""
    write(tmp_path / "0.parquet", a=[1])
    path = tmp_path / name
    path.write_bytes(content)
    for source in (path, tmp_path):
        with pytest.raises(SourceError, match="not a valid Parquet file") as caught:
            open_source(source)
        assert str(path) in str(caught.value)
        assert "2782" not in str(caught.value)


@pytest.mark.parametrize("kept", [0.1, 0.9])
def test_a_truncated_file(tmp_path, kept):
    """A file that was cut short on its way is seen before any row is read."""
    path = write(tmp_path / "a.parquet", a=range(1000))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(SourceError, match="cut short"):
        open_source(path)


def test_a_damaged_file(tmp_path):
    """Damage between a good start and a good footer is an error when it is reached, with the file's name."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [f"text {index}" for index in range(5000)]}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[20 : len(content) // 2] = b"\xaa" * (len(content) // 2 - 20)
    path.write_bytes(content)
    source = open_source(path)
    with pytest.raises(SourceError, match="damaged") as caught:
        list(source.batches())
    assert str(path) in str(caught.value)
