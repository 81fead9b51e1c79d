from __future__ import annotations

import pyarrow as pa
import pytest
from support.planning import checked

from airflow_provider_sms.messages import blocks as blocks_module
from airflow_provider_sms.messages.blocks import messages_to_send
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.stop_flag import StopFlag


def many(count, size=40):
    """Return the checked rows of a long table, each with a text of its own."""
    numbers = [str(27_820_000_000 + (n * 7919) % count) for n in range(count)]
    return checked(pa.table({"destination": numbers, "text": [f"{number}{'x' * size}" for number in numbers]})).spool


def rows_of(messages):
    return [message.row for message in messages]


@pytest.fixture
def blocks(monkeypatch):
    """Return the messages of each block that is sent, as a list that grows."""
    found, made = [], blocks_module._messages

    def noted(some, *, by_key):
        found.append(list(made(some, by_key=by_key)))
        yield from found[-1]

    monkeypatch.setattr(blocks_module, "_messages", noted)
    return found


@pytest.fixture
def small_blocks(monkeypatch):
    """Shrink the bounds: a test of the real ones would take long."""
    monkeypatch.setattr("airflow_provider_sms.recipients.batches.BATCH_ROWS", 100)
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(blocks_module, "MAX_BLOCK_ROWS", 400)


@pytest.mark.parametrize("status", Status)
def test_only_what_is_free_is_handed_over(status):
    """Neither what is held nor duplicates, suppressed or invalid rows; between passes also what is sent again."""
    spool = many(5)
    first = next(messages_to_send(spool, StopFlag()))
    spool.statuses[2] = status
    expected = [0, 1, 3, 4]
    assert rows_of(messages_to_send(spool, StopFlag())) == sorted(expected + [2] * (status == Status.FREE))
    later = messages_to_send(spool, StopFlag(), most=Status.AGAIN, held={first.key}.intersection)
    assert rows_of(later) == sorted(expected[1:] + [2] * (status <= Status.AGAIN))
    spool.statuses[:] = Status.ALREADY_SENT
    assert list(messages_to_send(spool, StopFlag())) == []


def test_the_order_is_kept_of_a_short_table_or_where_it_is_wanted(small_blocks, monkeypatch):
    """As long as the ledger is small, rows go out as they come."""
    assert rows_of(messages_to_send(many(1000), StopFlag(), keep_order=True)) == list(range(1000))
    monkeypatch.undo()
    assert rows_of(messages_to_send(many(2000), StopFlag())) == list(range(2000))


def test_a_long_table_comes_in_blocks_by_key(small_blocks, blocks):
    """Beyond the first rows, a claim is of neighbours: in blocks that grow up to a bound, ordered by key."""
    spool = many(3000)
    sent = list(messages_to_send(spool, StopFlag()))
    assert rows_of(blocks[0]) == list(range(100))
    assert all(block == sorted(block) for block in blocks[1:])
    sizes = [len(block) for block in blocks if block]
    assert (sizes[0], max(sizes), sizes[:-1]) == (100, 400, sorted(sizes[:-1]))
    assert sorted(sent) == sorted(messages_to_send(spool, StopFlag(), keep_order=True))


def test_a_task_that_is_to_stop_gathers_no_large_block(small_blocks, blocks):
    """Told to stop, what is read is handed over at once: time is short."""
    stop = StopFlag()
    messages = messages_to_send(many(3000), stop)
    while len(blocks) < 8:
        next(messages)
    stop.set()
    list(messages)
    assert {len(block) for block in blocks[8:] if block} == {100}


def test_long_texts_make_smaller_blocks(small_blocks, blocks, monkeypatch):
    """A block is bounded by the bytes of its texts, too."""
    monkeypatch.setattr(blocks_module, "MAX_BLOCK_BYTES", 1000)
    assert len(list(messages_to_send(many(3000), StopFlag()))) == 3000
    assert {len(block) for block in blocks if block} == {100}


@pytest.mark.skipif(pa.default_memory_pool().backend_name == "system", reason="Arrow has no memory of its own here")
@pytest.mark.parametrize("keep_order", [True, False])
def test_a_block_takes_none_of_the_memory_that_arrow_keeps(keep_order):
    """The system takes back the room of a block that was sent; Arrow would keep it, and take more for the next one."""
    spool = many(20_000)
    before = pa.total_allocated_bytes()
    for _ in messages_to_send(spool, StopFlag(), keep_order=keep_order):
        pass
    assert pa.total_allocated_bytes() <= before
