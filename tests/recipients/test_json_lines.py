from __future__ import annotations

import bz2
import gzip
import json

import pyarrow as pa
import pytest
from support.tables import read

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

ROWS = [
    {"destination": "27820000001", "name": "Ann", "amount": 12.5},
    {"destination": 27820000002, "amount": None, "day": "2026-03-01"},
    {"destination": "0821234567", "name": "Zoë 🎉", "amount": 10},
]
VALUES = {
    "destination": ["27820000001", "27820000002", "0821234567"],
    "name": ["Ann", None, "Zoë 🎉"],
    "amount": [12.5, None, 10],
    "day": [None, "2026-03-01", None],
}
TEXT = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()


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
def test_a_file(tmp_path, name, content):
    """Each line is a row, a key that a line lacks is null, and a date in text stays the text that it is."""
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path) == read(tmp_path) == VALUES
    assert read(path, ["day"]) == {"day": VALUES["day"]}
    assert open_source(path).description == f"{path} (1 JSON Lines file)"


def test_a_directory(tmp_path):
    """All files are one table, whatever keys each has."""
    for day, text in {"01": '{"a": 1, "day": 7}', "02": '{"a": "x"}\n{"b": null}'}.items():
        (tmp_path / f"{day}.jsonl").write_text(text)
    assert read(tmp_path) == {"a": ["1", "x", None], "day": [7, None, None], "b": [None, None, None]}


def test_a_key_that_an_object_has_twice(tmp_path):
    """The last value counts, as the documentation says: to find such keys would cost too much time."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "1", "b": "2", "a": "3"}')
    assert read(path) == {"a": ["3"], "b": ["2"]}


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
