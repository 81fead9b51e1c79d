from __future__ import annotations

from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pytest
from pyarrow import feather
from support.tables import read

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

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
def test_files_and_streams(tmp_path, name):
    """Arrow's file format, which is Feather, and its stream format are read under each of their names."""
    WRITERS[name](TABLE, tmp_path / name)
    source = open_source(tmp_path / name)
    assert source.description == f"{tmp_path / name} (1 Arrow file)"
    assert read(tmp_path / name) == read(tmp_path) == VALUES
    assert read(tmp_path / name, ["c", "a"]) == {"c": VALUES["c"], "a": VALUES["a"]}


@pytest.mark.parametrize("write", [write_file, write_stream])
def test_other_filesystems(write, tmp_path):
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
def test_files_of_other_kinds(tmp_path, content):
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


def test_a_damaged_file(tmp_path):
    """What lies beyond the end of a damaged file is not read: an offset in it is checked before it is followed."""
    path = tmp_path / "a.arrow"
    write_file(pa.table({"a": ["x" * 100, "y" * 100]}), path)
    content = path.read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 100, 200))
    assert offsets in content
    path.write_bytes(content.replace(offsets, b"".join(n.to_bytes(4, "little") for n in (0, 2**30, 2**30))))
    with pytest.raises(SourceError, match=r"a\.arrow .*: column 'a' holds text that is not UTF-8, or is damaged"):
        read(path)
