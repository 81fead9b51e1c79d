from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.planning import checked

from airflow_provider_sms.messages import spool as spool_module
from airflow_provider_sms.messages.keys import key_list
from airflow_provider_sms.messages.spool import Status, messages_to_send
from airflow_provider_sms.stop_flag import StopFlag


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
