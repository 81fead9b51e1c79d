from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import os
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.tables import Storage, read, write

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.columns import field_of
from airflow_provider_sms.recipients.sources import open_source


@pytest.mark.parametrize("end", ["early", "whole", "error"])
@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow", "jsonl"])
def test_each_file_is_closed_before_the_next(tmp_path, suffix, end):
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
    # The lines of many files of JSON may be one batch.
    assert len(storage.opened) == (1 if end == "early" and suffix != "jsonl" else 3)
    assert all(file.closed for file in storage.opened)


@pytest.mark.parametrize("rows", [[], [3]])
def test_a_file_that_lacks_a_column(tmp_path, rows):
    """It is named, rather than its rows being invalid, also where it has none; so is one that is gone since."""
    write(tmp_path / "1.parquet", a=[1], b=[2])
    path = write(tmp_path / "2.parquet", a=pa.array(rows, pa.int64()))
    assert read(tmp_path, ["a"]) == {"a": [1, *rows]}
    source = open_source(tmp_path)
    with pytest.raises(ColumnError, match=rf"^{path}: message: the source has no column 'b'"):
        list(source.batches(check=lambda schema: field_of(schema, "b", "message")))
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


# Parquet


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_row_group_is_not_held(tmp_path, kind):
    """Of a row group only a small part is in memory, however large it is."""
    texts = [f"A text that is long enough to weigh something: {n}" for n in range(400_000)]
    table, path = pa.table({"a": pa.array(texts, kind)}), tmp_path / "a.parquet"
    size = table.nbytes
    pq.write_table(table, path, row_group_size=len(texts), use_dictionary=False, compression="none")
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
    """Columns that are not needed are not read, nor are row groups before it is their turn; a dot is part of a name."""
    rows, path = 20_000, tmp_path / "a.parquet"
    wide = pa.array([{"c": os.urandom(300)} for _ in range(rows)])
    pq.write_table(pa.table({"a.b": range(rows), "a": wide}), path, row_group_size=1000, compression="none")
    storage = Storage()
    batches = open_source(SimpleNamespace(fs=storage, path=str(path))).batches(["a.b"])
    values = next(batches)["a.b"].to_pylist()
    (file,) = storage.opened
    early = file.count
    values += [value for batch in batches for value in batch["a.b"].to_pylist()]
    assert values == list(range(rows))
    assert early < file.count < path.stat().st_size / 8


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


# JSON lines


OBJECTS = [
    {"destination": "27820000001", "name": "Ann", "amount": 12.5},
    {"destination": 27820000002, "amount": None, "day": "2026-03-01"},
    {"destination": "0821234567", "name": "Zoë 🎉", "amount": 10},
]
OBJECTS_READ = {
    "destination": ["27820000001", "27820000002", "0821234567"],
    "name": ["Ann", None, "Zoë 🎉"],
    "amount": [12.5, None, 10],
    "day": [None, "2026-03-01", None],
}
TEXT = "\n".join(json.dumps(row, ensure_ascii=False) for row in OBJECTS).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", TEXT),
        ("a.NDJSON", TEXT + b"\n"),
        ("a.jsonl", b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n\r\n") + b"\r\n"),
        ("a.jsonl.gz", gzip.compress(TEXT)),
        ("a.ndjson.bz2", bz2.compress(TEXT)),
        ("a.jsonl.zst", pa.compress(TEXT, "zstd", asbytes=True)),
    ],
    ids=["jsonl", "ndjson", "CRLF", "gz", "bz2", "zst"],
)
def test_a_file_of_json_lines(tmp_path, name, content):
    """Each line is a row, a key that a line lacks is null, and a date in text stays the text that it is."""
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path) == read(tmp_path) == OBJECTS_READ
    assert read(path, ["day"]) == {"day": OBJECTS_READ["day"]}
    assert open_source(path).description == f"{path} (1 JSON Lines file)"


def test_files_of_json_lines(tmp_path):
    """All files are one table, whatever keys each has."""
    for day, text in {"01": '{"a": 1, "day": 7}', "02": '{"a": "x"}\n{"b": null}'}.items():
        (tmp_path / f"{day}.jsonl").write_text(text)
    assert read(tmp_path) == {"a": ["1", "x", None], "day": [7, None, None], "b": [None, None, None]}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}\n{"a": "2782000', 2),
        (b'{"a": 1}\n\n["27820000001"]\n', 3),
        (b'{"a": "\xff"}', 1),
        (b'{"a": NaN}', 1),
        (b'[{"a": "27820000001"}]', 1),
        (b'{"a": "' + b"x" * (3 << 20) + b'"}', 1),
    ],
    ids=["cut", "array", "no UTF-8", "NaN", "one array", "long"],
)
def test_lines_that_are_no_rows(tmp_path, content, line):
    """A line that is no object is named by its number, and nothing of it is quoted."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        read(path)
    assert str(caught.value) == (
        f"source: {path}: line {line} is not a JSON object; write one object a line, of up to 1 MiB, in UTF-8. A file "
        "that is one JSON array is not read"
    )
    assert caught.value.__cause__ is None
