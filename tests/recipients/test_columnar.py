from __future__ import annotations

import datetime as dt
import os
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.tables import Storage, read, write

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

ROWS = 400_000


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_row_group_is_not_held(tmp_path, kind):
    """Of a row group only a small part is in memory, however large it is."""
    table = pa.table(
        {"a": pa.array([f"A text that is long enough to weigh something: {n}" for n in range(ROWS)], kind)}
    )
    path, size = tmp_path / "a.parquet", table.nbytes
    pq.write_table(table, path, row_group_size=ROWS, use_dictionary=False, compression="none")
    del table
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


def test_only_what_is_needed_is_read(tmp_path):
    """Columns that are not needed are not read, nor are row groups before it is their turn."""
    rows, path = 20_000, tmp_path / "a.parquet"
    wide = pa.array([os.urandom(300) for _ in range(rows)])
    pq.write_table(pa.table({"a": range(rows), "wide": wide}), path, row_group_size=1000, compression="none")
    storage = Storage()
    batches = open_source(SimpleNamespace(fs=storage, path=str(path))).batches(["a"])
    values = next(batches)["a"].to_pylist()
    (file,) = storage.opened
    early = file.count
    values += [value for batch in batches for value in batch["a"].to_pylist()]
    assert values == list(range(rows))
    assert early < file.count < path.stat().st_size / 8


def test_names_with_dots(tmp_path):
    """A dot in a name is part of it, and does not reach into another column."""
    path = write(tmp_path / "a.parquet", pa.table({"a": [{"b": 1}], "a.c": [2], "x": [3]}))
    assert read(path, ["a.c"]) == {"a.c": [2]}
    assert read(path, ["a"]) == {"a": [{"b": 1}]}


@pytest.mark.parametrize(("name", "kind"), [("a.parquet", "Parquet"), ("part-0", "Parquet"), ("a.arrow", "Arrow")])
@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"destination,name\n27821234567,Thandi\n", b"\0" * 100, b"ARROW1\0\0 and no more", b"FEA1 and more"],
)
def test_a_file_of_another_format(tmp_path, name, kind, content):
    """A file of another format, an empty one too, is an error that names it and quotes nothing from it."""
    path = tmp_path / name
    path.write_bytes(content)
    hint = "; a name without an ending is taken for Parquet" if name == "part-0" else ""
    for source in (path, tmp_path):
        with pytest.raises(SourceError) as caught:
            read(source)
        words = f"source: {path}: is not a valid {kind} file, or is damaged or cut short{hint}"
        assert (str(caught.value), caught.value.__cause__) == (words, None)


@pytest.mark.parametrize("damage", ["start", "end", "middle"])
def test_a_damaged_file(tmp_path, damage):
    """A file that was cut short on its way, or is damaged within, is an error with its name."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [f"text {index}" for index in range(5000)]}), path, compression="zstd")
    content = path.read_bytes()
    tenth, half = len(content) // 10, len(content) // 2
    damaged = {"start": content[:tenth], "end": content[:-tenth], "middle": content[:20] + b"\xaa" * half}[damage]
    path.write_bytes(damaged + (content[len(damaged) :] if damage == "middle" else b""))
    with pytest.raises(SourceError, match=rf"^source: {path}: .* damaged or cut short"):
        read(path)


# Arrow


TABLE = pa.table(
    {
        "a": pa.array(["x", None, "y"]).dictionary_encode(),
        "b": pa.array([1.5, None, 0.1], pa.float32()),
        "c": pa.array(["27820000001", "27820000002", None], pa.large_string()),
    }
)
VALUES = {"a": ["x", None, "y"], "b": [1.5, None, 0.1], "c": ["27820000001", "27820000002", None]}


def write_file(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "a.arrow": write_file,
    "a.ipc": write_file,
    "a.feather": lambda table, path: feather.write_feather(table, path, compression="zstd"),
    "A.FEATHER": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
}


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_arrow_files(tmp_path, name, is_local):
    """Arrow's file format, which is Feather, is read under each of its names, anywhere."""
    WRITERS[name](TABLE, tmp_path / name)
    source = tmp_path / name if is_local else SimpleNamespace(fs=Storage(), path=str(tmp_path / name))
    assert read(source) == VALUES
    assert read(source, ["c", "a"]) == {"c": VALUES["c"], "a": VALUES["a"]}
    assert open_source(tmp_path / name).description == f"{tmp_path / name} (1 Arrow file)"


def test_a_damaged_arrow_file(tmp_path):
    """What lies beyond the end of a damaged file is not read: an offset in it is checked before it is followed."""
    path = tmp_path / "a.arrow"
    write_file(pa.table({"a": ["x" * 100, "y" * 100]}), path)
    content = path.read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 100, 200))
    assert offsets in content
    path.write_bytes(content.replace(offsets, b"".join(n.to_bytes(4, "little") for n in (0, 2**30, 2**30))))
    with pytest.raises(SourceError, match=r"a\.arrow: column 'a' holds text that is not UTF-8, or is damaged"):
        read(path)
