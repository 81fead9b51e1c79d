from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from types import SimpleNamespace

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.sources import open_source


def write(path, table=None, /, **columns):
    """Write a Parquet file, its directories too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if table is not None else pa.table(columns), path)
    return path


def read(source, columns=None):
    """Read a whole source as columns of Python values."""
    return pa.Table.from_batches(open_source(source).batches(columns)).to_pydict()


@pytest.fixture
def memory():
    """Give a filesystem that is not the local one, empty."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def remember(filesystem, path, **columns):
    with filesystem.open(path, "wb") as file:
        pq.write_table(pa.table(columns), file)


@pytest.mark.parametrize("form", [str, lambda path: path, lambda path: f"file://{path}"], ids=["str", "Path", "URI"])
def test_a_file(tmp_path, form):
    """A Parquet file may be named by a string, a path object or a URI."""
    path = write(tmp_path / "a.parquet", a=[1, 2], b=["x", None])
    source = open_source(form(path))
    assert source.num_rows == 2
    assert source.schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert source.describe() == f"{form(path)} (1 Parquet file)"
    assert read(form(path)) == {"a": [1, 2], "b": ["x", None]}


def test_a_relative_path(tmp_path, monkeypatch):
    """A relative path is one below the working directory."""
    write(tmp_path / "a.parquet", a=[1])
    monkeypatch.chdir(tmp_path)
    assert read("a.parquet") == {"a": [1]}


def test_a_directory(tmp_path):
    """A directory is all Parquet files in it, at any depth, sorted by path, whatever they are called."""
    write(tmp_path / "b" / "2.parquet", a=[3])
    write(tmp_path / "a.PARQUET", a=[1])
    write(tmp_path / "b" / "1.pq", a=[2])
    write(tmp_path / "c" / "part-0", a=[4])
    write(tmp_path / "d.c000", a=[5])
    source = open_source(str(tmp_path))
    assert source.num_rows == 5
    assert source.describe() == f"{tmp_path} (5 Parquet files)"
    assert read(tmp_path) == read(f"{tmp_path}/") == {"a": [1, 2, 3, 4, 5]}


def test_what_a_directory_holds_beside_data(tmp_path):
    """Markers, hidden and temporary files, directories of these, and files of another kind are passed over."""
    write(tmp_path / "a.parquet", a=[1])
    for name in ("_SUCCESS", ".a.parquet.crc", "_temporary/0/b.parquet", ".staging/c.parquet", "README.md", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert read(tmp_path) == {"a": [1]}


def test_hidden_names_above_the_source_do_not_matter(tmp_path):
    """Only names within the directory can hide a file, not those of the way to it."""
    write(tmp_path / ".cache" / "_out" / "a.parquet", a=[1])
    assert read(tmp_path / ".cache" / "_out") == {"a": [1]}


def test_hive_partitions(tmp_path):
    """What the directories say in the manner of Hive is a column: integers where all are, else text, or null."""
    write(tmp_path / "year=2024" / "area=010" / "a.parquet", a=[1])
    write(tmp_path / "year=2025" / "area=a%20b" / "a.parquet", a=[2, 3])
    write(tmp_path / "year=2025" / "area=__HIVE_DEFAULT_PARTITION__" / "a.parquet", a=[4])
    expected = {"a": [1, 4, 2, 3], "year": [2024, 2025, 2025, 2025], "area": ["010", None, "a b", "a b"]}
    assert expected == read(tmp_path)
    assert read(tmp_path, ["area", "a"]) == {"area": expected["area"], "a": expected["a"]}
    assert open_source(tmp_path).schema.field("year").type == pa.int64()


def test_only_partition_columns(tmp_path):
    """Columns of the path alone come as often as there are rows."""
    write(tmp_path / "year=2024" / "a.parquet", a=[1, 2])
    assert read(tmp_path, ["year"]) == {"year": [2024, 2024]}


def test_a_column_in_the_file_goes_before_the_path(tmp_path):
    """A column that a file holds is not overwritten by a name in its path."""
    write(tmp_path / "a=7" / "x.parquet", a=[1])
    assert read(tmp_path) == {"a": [1]}


def test_a_glob(tmp_path):
    """A glob is the files that match, sorted, and the files in the directories that match."""
    for name in ("p2.parquet", "p1.parquet", "q.parquet", "_p.parquet", "part/x.parquet"):
        write(tmp_path / name, name=[name])
    assert read(f"{tmp_path}/p?.parquet") == {"name": ["p1.parquet", "p2.parquet"]}
    assert read(f"{tmp_path}/*") == {"name": ["p1.parquet", "p2.parquet", "part/x.parquet", "q.parquet"]}
    assert open_source(f"{tmp_path}/**/x.parquet").num_rows == 1


def test_a_name_that_looks_like_a_glob(tmp_path):
    """A file whose name has the signs of a glob is itself."""
    path = write(tmp_path / "a[1].parquet", a=[1])
    write(tmp_path / "a1.parquet", a=[2])
    assert read(path) == {"a": [1]}


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


def test_other_filesystems(memory):
    """A URI of any protocol that fsspec knows is a file, a directory or a glob there."""
    remember(memory, "/data/b.parquet", a=[2])
    remember(memory, "/data/year=2024/a.parquet", a=[1])
    assert read("memory://data/b.parquet") == {"a": [2]}
    assert read("memory://data", ["a"]) == {"a": [2, 1]}
    assert read("memory://data/*/*.parquet") == {"a": [1], "year": [2024]}
    assert open_source("memory://data").describe() == "memory://data (2 Parquet files)"


def test_objects_with_a_filesystem(memory):
    """An object that has a filesystem and a path there stands for it, as Airflow's ObjectStoragePath does."""
    remember(memory, "/data/a.parquet", a=[1])
    remember(memory, "/data/b.parquet", a=[2])
    assert read(UPath("memory://data")) == {"a": [1, 2]}
    assert read([UPath("memory://data/b.parquet"), UPath("memory://data/a.parquet")]) == {"a": [2, 1]}
    assert read(SimpleNamespace(fs=memory, path="/data/?.parquet")) == {"a": [1, 2]}


def test_a_local_object_with_a_filesystem(tmp_path):
    """Such an object may stand for a local file, too."""
    write(tmp_path / "a.parquet", a=[1])
    assert read(UPath(tmp_path / "a.parquet")) == {"a": [1]}
    assert read(UPath(f"file://{tmp_path}")) == {"a": [1]}


def test_batches(tmp_path):
    """Batches are as large as asked across row groups and files, but for the last, and start anew with each call."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(25)}), path, row_group_size=10)
    write(tmp_path / "b.parquet", a=pa.array([], pa.int64()))
    write(tmp_path / "c.parquet", a=[25])
    source = open_source(tmp_path)
    for _ in range(2):
        batches = list(source.batches(["a"], batch_size=4))
        assert [value for batch in batches for value in batch["a"].to_pylist()] == list(range(26))
        assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4, 4, 2]
    assert [len(batch) for batch in source.batches(["a"])] == [26]


def test_two_passes_at_once(tmp_path):
    """Two passes over one source do not disturb each other."""
    source = open_source(write(tmp_path / "a.parquet", a=[1, 2]))
    pairs = zip(source.batches(batch_size=1), source.batches(batch_size=1), strict=True)
    assert [(one["a"][0].as_py(), other["a"][0].as_py()) for one, other in pairs] == [(1, 1), (2, 2)]


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
    assert source.num_rows == rows
    footer = sum(filesystem.counts)
    batches = source.batches(["a"])
    assert len(next(batches)) == 10_000
    assert sum(1 for _ in batches) == 1
    assert sum(filesystem.counts) < 3 * footer + rows * 20 < path.stat().st_size / 4
    filesystem.counts.clear()
    assert len(next(source.batches(batch_size=1000))) == 1000
    assert sum(filesystem.counts) < path.stat().st_size / 4


def test_names_with_dots(tmp_path):
    """A dot in a name is part of it, and does not reach into another column."""
    path = write(tmp_path / "a.parquet", pa.table({"a": [{"b": 1}], "a.c": [2], "x": [3]}))
    assert read(path, ["a.c"]) == {"a.c": [2]}
    assert read(path, ["a"]) == {"a": [{"b": 1}]}


def test_text_is_text(tmp_path):
    """Categories and wide text, which pandas and others write, are read as plain text."""
    frame = pd.DataFrame({"a": pd.Categorical(["x", None]), "b": pd.array(["y", None], dtype="string")})
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_source(tmp_path).schema == pa.schema([("a", pa.string()), ("b", pa.string())])
    assert read(tmp_path) == {"a": ["x", None], "b": ["y", None]}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), pa.int64()),
        (pa.array([1]), pa.array([1.5]), pa.float64()),
        (pa.nulls(1), pa.array(["x"]), pa.string()),
        (pa.array(["x"]), pa.nulls(1), pa.string()),
        (pa.array(["x"]), pa.array(["y"]).dictionary_encode(), pa.string()),
        (pa.array(["x"]), pa.array(["y"], pa.large_string()), pa.string()),
        (pa.array([1], pa.timestamp("ms")), pa.array([1], pa.timestamp("us")), pa.timestamp("us")),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("10.25")]), pa.decimal128(4, 2)),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_types_that_go_together(tmp_path, one, other, kind):
    """Files of one table may hold a column in different widths, as exports of different days do."""
    write(tmp_path / "1.parquet", a=one)
    write(tmp_path / "2.parquet", a=other)
    assert open_source(tmp_path).schema == pa.schema([("a", kind)])
    assert [value for array in (one, other) for value in array.cast(kind).to_pylist()] == read(tmp_path)["a"]


@pytest.mark.parametrize(
    "other",
    [pa.array(["x"]), pa.array([True]), pa.array([dt.date(2025, 1, 1)]), pa.array([[1]])],
    ids=lambda a: str(a.type),
)
def test_types_that_do_not_go_together(tmp_path, other):
    """A column that is a number in one file and something else in another is an error that names file and column."""
    write(tmp_path / "1.parquet", b=["y"], a=[1])
    path = write(tmp_path / "2.parquet", b=["y"], a=other)
    with pytest.raises(SourceError, match="column 'a' is of type") as caught:
        open_source(tmp_path)
    assert str(caught.value).startswith(str(path))


def test_integers_that_no_float_can_hold(tmp_path):
    """Where one file made an integer column float, integers that would change are an error without their value."""
    path = write(tmp_path / "1.parquet", id=[2**53 + 1])
    write(tmp_path / "2.parquet", id=[1.0])
    with pytest.raises(SourceError, match="'id'") as caught:
        read(tmp_path)
    assert str(caught.value).startswith(str(path))
    assert str(2**53) not in str(caught.value)


def test_a_file_that_lacks_a_column(tmp_path):
    """A file that lacks a needed column is named, rather than its rows being invalid one by one."""
    write(tmp_path / "1.parquet", a=[1], b=[2])
    path = write(tmp_path / "2.parquet", a=[3])
    assert read(tmp_path, ["a"]) == {"a": [1, 3]}
    with pytest.raises(SourceError, match=r"has no column 'b'") as caught:
        read(tmp_path, ["a", "b"])
    assert str(caught.value).startswith(str(path))


def test_a_column_that_no_file_has(tmp_path):
    """A column that is nowhere is the caller's mistake and not the files'."""
    with pytest.raises(ColumnError, match="no column 'b'"):
        read(write(tmp_path / "1.parquet", a=[1]), ["b"])


@pytest.mark.parametrize("name", ["nothing.parquet", "nothing", "nothing/a.parquet"])
def test_a_missing_file(tmp_path, name):
    """A path where nothing is is an error that shows the path."""
    path = tmp_path / name
    with pytest.raises(SourceError, match="there is no such file or directory") as caught:
        open_source(path)
    assert str(path) in str(caught.value)


def test_a_glob_without_a_match(tmp_path):
    """A glob that matches nothing is an error, and no empty source."""
    with pytest.raises(SourceError, match=r"\*\.parquet: no file matches"):
        open_source(f"{tmp_path}/*.parquet")


@pytest.mark.parametrize("names", [[], ["_SUCCESS"], ["notes.txt"]])
def test_a_directory_without_data(tmp_path, names):
    """A directory without Parquet files is an error, and no empty source."""
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceError, match="no Parquet or CSV file in the directory"):
        open_source(tmp_path)


@pytest.mark.parametrize("source", ["", "  "])
def test_an_empty_path(source):
    """A template that rendered to nothing does not stand for the working directory."""
    with pytest.raises(SourceError, match="source is empty"):
        open_source(source)


@pytest.mark.parametrize("name", ["a.parquet", "part-0"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"destination,name\n27821234567,Thandi\n", b"\0" * 100])
def test_a_file_that_is_not_parquet(tmp_path, name, content):
    """A file of another format, an empty one too, is an error that names it and quotes nothing from it."""
    write(tmp_path / "0.parquet", a=[1])
    path = tmp_path / name
    path.write_bytes(content)
    for source in (path, tmp_path):
        with pytest.raises(SourceError, match="not a Parquet file") as caught:
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


def test_a_file_that_vanishes(tmp_path):
    """A file that is removed between two passes is an error, and its rows are not just left out."""
    path = write(tmp_path / "a.parquet", a=[1])
    source = open_source(path)
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(source.batches())


def test_duplicate_columns(tmp_path):
    """A file in which two columns have one name is an error."""
    path = write(tmp_path / "a.parquet", pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(SourceError, match="more than one column is named 'a'"):
        open_source(path)


def test_text_that_is_not_utf8(tmp_path):
    """Text that is not UTF-8, which Parquet does not rule out, is an error that names file and column."""
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    path = write(tmp_path / "a.parquet", name=broken)
    with pytest.raises(SourceError, match="'name' holds text that is not UTF-8") as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_an_unknown_protocol():
    """A protocol that nothing is installed for is an error that says so."""
    with pytest.raises(SourceError, match="Protocol not known: nope"):
        open_source("nope://bucket/a.parquet")


class BrokenFilesystem:
    """A filesystem whose every answer is an error that quotes the path."""

    def info(self, path):
        raise RuntimeError(path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("https://host/a.parquet?X-Amz-Signature=SECRET", "https://host/a.parquet"),
        ("sftp://user:SECRET@host/a.parquet", "sftp://*****@host/a.parquet"),
    ],
)
def test_secrets_in_a_uri(path, name):
    """A password or a signature in a URI is in no error, and not in what led to it."""

    class Location(SimpleNamespace):
        def __str__(self):
            return self.path

    with pytest.raises(SourceError) as caught:
        open_source(Location(fs=BrokenFilesystem(), path=path))
    assert str(caught.value) == f"{name}: cannot be looked up: RuntimeError"
    assert caught.value.__cause__ is None


def test_a_storage_that_fails():
    """A storage that fails is an error of ours with its own behind it."""
    with pytest.raises(SourceError, match="cannot be looked up: RuntimeError") as caught:
        open_source(SimpleNamespace(fs=BrokenFilesystem(), path="/a.parquet"))
    assert isinstance(caught.value.__cause__, RuntimeError)
