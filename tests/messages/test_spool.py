from __future__ import annotations

import gc
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.planning import checked

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.messages import spool as spool_module
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.keys import key_list
from airflow_provider_sms.messages.spool import CheckedSpool, Status, messages_to_send
from airflow_provider_sms.stop_flag import StopFlag


def composed(*numbers):
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
    before, count = composed(*numbers), len(numbers)
    for _ in range(2):
        spool.add(before)
    spool.finish()
    for found in (list(spool.batches()), *zip(*zip(spool.batches(), spool.batches(), strict=True), strict=True)):
        assert [(rows.first, rows.columns) for rows in found] == [(0, before), (count, before)]


def test_each_row_has_a_status(spool):
    """It is free until it is decided, and every reading after that has it; no rows have none."""
    for numbers in (("27820000001", "27820000002"), ("27820000003", "27820000004")):
        spool.add(composed(*numbers))
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
        CheckedSpool() if step == "made" else spool.add(composed("27820000001"))
    assert str(caught.value) == (
        f"The checked rows cannot be kept in {tmp_path}, the folder for temporary files: No space left on device. "
        "Nothing was sent. Make room there, about 50 bytes a row, or set TMPDIR to a folder that has room"
    )


# Messages that are to be sent


def many(count, size=40):
    """Return the checked rows of a long table, each with a text of its own."""
    numbers = [str(27_820_000_000 + (n * 7919) % count) for n in range(count)]
    return checked(pa.table({"destination": numbers, "text": [f"{number}{'x' * size}" for number in numbers]})).spool


def keys_of(requests):
    return [key for request in requests for key in request.keys]


def to_send(spool, *, stop=None, size=100, **how):
    return messages_to_send(spool, stop or StopFlag(), size, **how)


def keys_in(spool, name="key"):
    return [key for rows in spool.batches() for key in rows.columns.column(name).to_pylist()]


@pytest.fixture
def blocks(monkeypatch):
    """Return the keys of each block that is sent, as a list that grows."""
    found, made = [], spool_module._requests

    def noted(*args, **how):
        requests = list(made(*args, **how))
        found.append(keys_of(requests))
        yield from requests

    monkeypatch.setattr(spool_module, "_requests", noted)
    return found


@pytest.fixture
def small_blocks(monkeypatch):
    """Shrink the bounds: a test of the real ones would take long."""
    monkeypatch.setattr("airflow_provider_sms.recipients.batches.BATCH_ROWS", 100)
    monkeypatch.setattr(spool_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(spool_module, "MAX_BLOCK_ROWS", 400)


@pytest.mark.parametrize("status", Status)
def test_only_what_is_free_is_handed_over(status):
    """Neither what is held nor duplicates, suppressed or invalid rows; between passes also what is sent again."""
    spool = many(5)
    keys = keys_in(spool)
    spool.statuses[2] = status
    others = [keys[row] for row in (0, 1, 3, 4)]
    assert sorted(keys_of(to_send(spool))) == sorted(others + [keys[2]] * (status == Status.FREE))
    later = to_send(
        spool, most=Status.AGAIN, are_free=lambda some: np.array([key != keys[0] for key in key_list(some)])
    )
    assert sorted(keys_of(later)) == sorted(others[1:] + [keys[2]] * (status <= Status.AGAIN))
    spool.statuses[:] = Status.ALREADY_SENT
    assert list(to_send(spool)) == []


@pytest.mark.parametrize("keep_order", [True, False])
@pytest.mark.parametrize("size", [1, 7, 30, 100])
def test_every_request_is_full_but_the_last(small_blocks, size, keep_order):
    """Whatever the sizes of batches and blocks: a request costs as much with one message. Each row is in one."""
    spool = many(1234)
    spool.statuses[::5] = Status.SUPPRESSED
    requests = list(to_send(spool, size=size, keep_order=keep_order))
    assert {len(each) for each in requests[:-1]} == {size}
    columns = (keys_in(spool, name) for name in ("key", "destination", "content", "parts"))
    rows = [row for place, row in enumerate(zip(*columns, strict=True)) if place % 5]
    sent = [row for r in requests for row in zip(r.keys, r.destinations, r.contents, r.parts, strict=True)]
    assert sorted(sent) == sorted(rows)


@pytest.mark.parametrize(("rows", "how"), [(1000, {"size": 30, "keep_order": True}), (90, {})])
def test_the_order_is_kept_of_a_short_table_or_where_it_is_wanted(small_blocks, rows, how):
    """As long as the ledger is small, rows go out as they come."""
    spool = many(rows)
    assert keys_of(to_send(spool, **how)) == keys_in(spool)


def test_a_long_table_comes_in_blocks_by_key(small_blocks, blocks):
    """Beyond the first rows, a claim is of neighbours: in blocks that grow up to a bound, ordered by key."""
    spool = many(3000)
    sent = keys_of(to_send(spool))
    assert blocks[0] == keys_in(spool)[:100]
    assert all(block == sorted(block) for block in blocks[1:])
    sizes = [len(block) for block in blocks if block]
    assert (sizes[0], max(sizes), sizes[:-1]) == (100, 400, sorted(sizes[:-1]))
    assert sorted(sent) == sorted(keys_in(spool))


@pytest.mark.parametrize("why", ["stop", "long texts"])
def test_a_block_may_have_to_be_small(small_blocks, blocks, monkeypatch, why):
    """A task that is to stop has little time, and a block is bounded by the bytes of its texts, too."""
    stop, seen = StopFlag(), 0
    if why == "long texts":
        monkeypatch.setattr(spool_module, "MAX_BLOCK_BYTES", 1000)
    requests = to_send(many(3000), stop=stop)
    if why == "stop":
        while len(blocks) < 8:
            next(requests)
        stop.set()
        seen = 8
    list(requests)
    assert {len(block) for block in blocks[seen:] if block} == {100}
    assert len({key for block in blocks for key in block}) == 3000


@pytest.mark.skipif(pa.default_memory_pool().backend_name == "system", reason="Arrow has no memory of its own here")
@pytest.mark.parametrize("keep_order", [True, False])
def test_a_block_takes_none_of_the_memory_that_arrow_keeps(keep_order):
    """The system takes back the room of a block that was sent; Arrow would keep it, and take more for the next one."""
    spool = many(20_000)
    before = pa.total_allocated_bytes()
    for _ in to_send(spool, size=70, keep_order=keep_order):
        pass
    assert pa.total_allocated_bytes() <= before
