from __future__ import annotations

import datetime as dt
import os
from types import SimpleNamespace

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
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


# Arrow


TABLE = pa.table(
    {
        "a": pa.array(["x", None, "y"]).dictionary_encode(),
        "b": pa.array([1.5, None, 0.1], pa.float32()),
        "c": pa.array(["27820000001", "27820000002", None], pa.large_string()),
    }
)
VALUES = {"a": ["x", None, "y"], "b": [1.5, None, 0.1], "c": ["27820000001", "27820000002", None]}


def write_stream(table, path, **options):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, **options)


def write_file(table, path, **options):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, **options)


WRITERS = {
    "a.arrow": write_file,
    "a.ipc": write_file,
    "a.arrows": write_stream,
    "b.arrow": write_stream,
    "a.feather": lambda table, path: feather.write_feather(table, path, compression="zstd"),
    "A.FEATHER": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_arrow_files_and_streams(tmp_path, name):
    """Arrow's file format, which is Feather, and its stream format are read under each of their names."""
    WRITERS[name](TABLE, tmp_path / name)
    source = open_source(tmp_path / name)
    assert source.description == f"{tmp_path / name} (1 Arrow file)"
    assert read(tmp_path / name) == read(tmp_path) == VALUES
    assert read(tmp_path / name, ["c", "a"]) == {"c": VALUES["c"], "a": VALUES["a"]}


@pytest.mark.parametrize("write", [write_file, write_stream])
def test_arrow_on_other_filesystems(write, tmp_path):
    """An Arrow file may be anywhere that fsspec reaches."""
    write(TABLE, tmp_path / "a.arrow")
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/arrow/a.arrow", (tmp_path / "a.arrow").read_bytes())
    try:
        assert read(SimpleNamespace(fs=filesystem, path="/arrow/a.arrow")) == VALUES
    finally:
        filesystem.rm("/arrow", recursive=True)


@pytest.mark.parametrize(
    "content", [b"", b"destination\n27820000001\n", b"ARROW1\0\0 and nothing else", b"FEA1 and more"]
)
def test_files_that_are_no_arrow(tmp_path, content):
    """A file that is no Arrow is named, and nothing in it is quoted."""
    path = tmp_path / "a.arrow"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert str(caught.value) == f"source: {path}: is not a valid Arrow file, or is damaged or cut short"


@pytest.mark.parametrize("names", [None, ["n"]])
@pytest.mark.parametrize("change", ["whole", "cut short", "put together"])
def test_a_stream_is_read_whole_or_refused(tmp_path, change, names):
    """A stream that was cut between two batches, or has another one after it, would lose people."""
    path, table = tmp_path / "a.arrows", pa.table({"n": list(range(200)), "text": ["x"] * 200})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        first, second = table.to_batches(max_chunksize=100)
        stream.write_batch(first)
        end = file.tell()
        stream.write_batch(second)
    if change == "whole":
        assert len(read(path, names)["n"]) == 200
        return
    content = path.read_bytes()
    path.write_bytes(content[:end] if change == "cut short" else content * 2)
    with pytest.raises(SourceError, match=r"a\.arrows: is not a valid Arrow file, or is damaged or cut short"):
        read(path, names)


def test_a_damaged_arrow_file(tmp_path):
    """What lies beyond the end of a damaged file is not read: an offset in it is checked before it is followed."""
    path = tmp_path / "a.arrow"
    write_file(pa.table({"a": ["x" * 100, "y" * 100]}), path)
    content = path.read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 100, 200))
    assert offsets in content
    path.write_bytes(content.replace(offsets, b"".join(n.to_bytes(4, "little") for n in (0, 2**30, 2**30))))
    with pytest.raises(SourceError, match=r"a\.arrow .*: column 'a' holds text that is not UTF-8, or is damaged"):
        read(path)
