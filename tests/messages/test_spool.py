from __future__ import annotations

import gc
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.spool import CheckedSpool, Status


def checked(*numbers):
    """Check some rows."""
    table = pa.table({"destination": pa.array(numbers, pa.string()), "name": [f"N{n}" for n in range(len(numbers))]})
    return Composer("Hi {name}", None).compose(table.to_batches()[0])


@pytest.fixture
def spool():
    """Return a spool, which is closed afterwards."""
    made = CheckedSpool()
    yield made
    made.close()


@pytest.mark.parametrize(
    "numbers", [("27820000001", "27820000002"), (None, "27820000001", "letters", "27820000002"), (None, "x")]
)
def test_rows_come_back_as_they_were_checked(spool, numbers):
    """As often as asked, also at once: each message, and each invalid row with its reason."""
    before, count = checked(*numbers), len(numbers)
    for _ in range(2):
        spool.add(before)
    spool.finish()
    for found in (list(spool.batches()), *zip(*zip(spool.batches(), spool.batches(), strict=True), strict=True)):
        assert [(rows.first, rows.columns) for rows in found] == [(0, before), (count, before)]


def test_each_row_has_a_status(spool):
    """It is free until it is decided, and every reading after that has it; no rows have none."""
    for numbers in (("27820000001", "27820000002"), ("27820000003", "27820000004")):
        spool.add(checked(*numbers))
    spool.finish()
    for rows in spool.batches():
        assert rows.statuses.tolist() == [Status.FREE] * 2
        rows.statuses[1] = Status.SUPPRESSED
    for rows in spool.batches():
        indices, columns = rows.where(rows.statuses == Status.SUPPRESSED)
        assert (indices.tolist(), columns) == ([rows.first + 1], rows.columns[1:])
    empty = CheckedSpool()
    empty.finish()
    assert (list(empty.batches()), empty.statuses.tolist()) == ([], [])


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
def test_a_disk_that_is_full(spool, monkeypatch, tmp_path, step):
    """Without room there is an error that names the folder, which a retry may get over."""

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    spool._writer = type("Writer", (), {"write_batch": fail})()
    with pytest.raises(SourceUnavailableError) as caught:
        CheckedSpool() if step == "made" else spool.add(checked("27820000001"))
    assert str(caught.value) == (
        f"The checked rows cannot be kept in {tmp_path}, the folder for temporary files: No space left on device. "
        "Nothing was sent. Make room there, about 50 bytes a row, or set TMPDIR to a folder that has room"
    )
