from __future__ import annotations

import gc
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.messages.prepared import RejectedRow
from airflow_provider_sms.messages.spool import CheckedSpool


def prepared(*numbers, first=0):
    """Check some rows."""
    table = pa.table({"destination": pa.array(numbers, pa.string()), "name": [f"N{n}" for n in range(len(numbers))]})
    return Preparation("Hi {name}", None).prepare(table.to_batches()[0], first)


@pytest.fixture
def spool():
    """Return a spool, which is closed afterwards."""
    made = CheckedSpool()
    yield made
    made.close()


@pytest.mark.parametrize(
    "numbers",
    [("27820000001", "27820000002"), (None, "27820000001", "letters", "27820000002"), (None, "x"), ()],
    ids=["valid", "some invalid", "none valid", "no rows"],
)
def test_rows_come_back_as_they_were_checked(spool, numbers):
    """Each message with its row, number, text and key, and each invalid row with its reason, as often as asked."""
    before = prepared(*numbers) if numbers else None
    if before is not None:
        spool.add(before)
        spool.add(prepared(*numbers, first=len(numbers)))
    spool.finish()
    for _ in range(2):
        found = list(spool.batches())
        assert [each.num_rows for each in found] == [len(numbers)] * 2 * bool(numbers)
        for n, each in enumerate(found):
            rows = range(n * len(numbers), (n + 1) * len(numbers))
            assert each.destinations == before.destinations
            assert (each.contents, each.keys) == (before.contents, before.keys)
            assert each.rows == [row + rows.start for row in before.rows]
            assert each.rejected == [
                RejectedRow(row.row + rows.start, row.column, row.reason, "") for row in before.rejected
            ]
            assert each.rejected_numbers == before.rejected_numbers


def test_two_readings_do_not_disturb_each_other(spool):
    """The send and the report may read at once."""
    for n in range(3):
        spool.add(prepared(f"2782000000{n}", first=n))
    spool.finish()
    assert [a.keys == b.keys for a, b in zip(spool.batches(), spool.batches(), strict=True)] == [True] * 3


def descriptors(folder):
    """Return the open files of a folder that have no name any more."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(str(folder)) and "deleted" in target:
            found[int(link.name)] = target
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's view of open files")
def test_the_file_has_no_name(tmp_path, monkeypatch):
    """The rows are in a file that only this user may read, that has no name, and that is gone when closed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = descriptors(tmp_path).keys()
    spool = CheckedSpool()
    assert list(tmp_path.iterdir()) == []
    (descriptor,) = descriptors(tmp_path).keys() - before
    found = os.fstat(descriptor)
    assert (stat.S_IMODE(found.st_mode), found.st_nlink) == (0o600, 0)
    spool.close()
    spool.close()
    assert descriptors(tmp_path).keys() == before
    with pytest.raises(ValueError, match="closed"):
        list(spool.batches())
    CheckedSpool()
    gc.collect()
    assert descriptors(tmp_path).keys() == before


@pytest.mark.parametrize("step", ["made", "written"])
def test_a_disk_that_is_full(monkeypatch, tmp_path, step):
    """Without room there is an error that names the folder, which a retry may get over."""

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if step == "made":
        monkeypatch.setattr("tempfile.TemporaryFile", fail)
        with pytest.raises(SourceUnavailableError) as caught:
            CheckedSpool()
    else:
        spool = CheckedSpool()
        spool._writer = type("Writer", (), {"write_batch": fail})()
        with pytest.raises(SourceUnavailableError) as caught:
            spool.add(prepared("27820000001"))
        spool.close()
    assert str(caught.value) == (
        f"The checked rows cannot be kept in {tmp_path}, the folder for temporary files: No space left on device. "
        "Nothing was sent. Make room there, a few hundred bytes a row, or set TMPDIR to a folder that has room"
    )
