from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pytest
from pyarrow import orc
from support.tables import read

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.sources import open_source

VALUES = {
    "destination": ["27820000001", None],
    "n": [1, None],
    "amount": [Decimal("12.50"), None],
    "day": [dt.date(2026, 3, 1), None],
    "at": [dt.datetime(2026, 3, 1, 9, 30), None],  # noqa: DTZ001 - without a zone is what is meant
    "truth": [True, None],
}


def test_a_file(tmp_path):
    """An ORC file keeps the types of its columns; only those asked for are read."""
    orc.write_table(pa.table(VALUES), tmp_path / "a.orc")
    source = open_source(tmp_path / "a.orc")
    assert source.describe() == f"{tmp_path / 'a.orc'} (1 ORC file)"
    assert read(tmp_path / "a.orc") == read(tmp_path) == VALUES
    assert read(tmp_path / "a.orc", ["day", "n"]) == {"day": VALUES["day"], "n": VALUES["n"]}


def test_stripes(tmp_path):
    """How the rows lie in stripes does not show."""
    table = pa.table({"n": list(range(50_000)), "text": [f"A text of some length: {n}" for n in range(50_000)]})
    orc.write_table(table, tmp_path / "a.orc", stripe_size=1 << 16, batch_size=1000)
    assert orc.ORCFile(tmp_path / "a.orc").nstripes > 1
    batches = list(open_source(tmp_path / "a.orc").batches(["n"], 30_000))
    assert [len(batch) for batch in batches] == [30_000, 20_000]
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(50_000))


def test_other_filesystems(tmp_path):
    """An ORC file may be anywhere that fsspec reaches."""
    orc.write_table(pa.table(VALUES), tmp_path / "a.orc")
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/orc/a.orc", (tmp_path / "a.orc").read_bytes())
    try:
        assert read(SimpleNamespace(fs=filesystem, path="/orc/a.orc")) == VALUES
    finally:
        filesystem.rm("/orc", recursive=True)


@pytest.mark.parametrize("content", [b"", b"destination\n27820000001\n", b"ORC and nothing else"])
def test_files_of_other_kinds(tmp_path, content):
    """A file that is no ORC is named, and nothing in it is quoted."""
    path = tmp_path / "a.orc"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert str(caught.value) == f"source: {path}: is not an ORC file, or is damaged or cut short"


def test_an_orc_file_under_another_name(tmp_path):
    """The error says how to name it."""
    orc.write_table(pa.table(VALUES), tmp_path / "part-0")
    with pytest.raises(SourceError, match=r"is an ORC file; name it \.orc"):
        open_source(tmp_path)
