from __future__ import annotations

import pyarrow as pa
import pytest
from support.composed import messages_in
from support.planning import checked
from support.sending import people

from airflow_provider_sms.messages import blocks as blocks_module
from airflow_provider_sms.messages.blocks import Block, outgoing_blocks
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.stop_flag import StopFlag


def many(count, size=40):
    """Return the checked rows of a long table, each with a text of its own."""
    numbers = [str(27_820_000_000 + (n * 7919) % count) for n in range(count)]
    return checked(pa.table({"destination": numbers, "text": [f"{number}{'x' * size}" for number in numbers]})).spool


def rows_of(blocks):
    return [message.row for message in messages_in(blocks)]


def keys_of(block):
    return block.keys(0, len(block))


@pytest.fixture
def small_blocks(monkeypatch):
    """Shrink the bounds: a test of the real ones would take long."""
    monkeypatch.setattr("airflow_provider_sms.recipients.batches.BATCH_ROWS", 100)
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(blocks_module, "MAX_BLOCK_ROWS", 400)


def test_a_block_gives_its_messages_as_they_came():
    """Columns are only a way to keep messages: each comes out whole, with its row."""
    messages = [message._replace(row=row, parts=1) for row, message in enumerate(people(50))]
    block = Block.of(messages)
    assert block.messages(0, len(block)) == messages
    assert (block.messages(5, 8), block.keys(5, 8)) == (messages[5:8], [m.key for m in messages[5:8]])
    assert len(block.keys(48, 60)) == 2


def test_a_message_to_groups_has_no_destination():
    """What is no number stays none."""
    message = Outgoing(b"k" * 16, None, "Hi \ud83d")
    assert messages_in([Block.of([message])]) == [message]


@pytest.mark.parametrize("status", Status)
def test_only_what_is_free_is_handed_over(status):
    """Neither what somebody holds, or may have been sent, nor duplicates, suppressed or invalid rows."""
    spool = many(5)
    spool.statuses[2] = status
    expected = [0, 1, 2, 3, 4] if status == Status.FREE else [0, 1, 3, 4]
    assert rows_of(outgoing_blocks(spool, StopFlag())) == expected


@pytest.mark.parametrize("status", Status)
def test_what_is_free_by_now_is_handed_over(status):
    """Between two passes: messages that were to be sent, or to be sent again, and that nobody holds."""
    spool = many(5)
    (block,) = outgoing_blocks(spool, StopFlag())
    held = {block.messages(0, 1)[0].key}
    spool.statuses[2] = status
    expected = [1, 2, 3, 4] if status in (Status.FREE, Status.AGAIN) else [1, 3, 4]
    assert rows_of(outgoing_blocks(spool, StopFlag(), most=Status.AGAIN, held=held.intersection)) == expected


def test_a_table_without_anybody_to_text_gives_no_block():
    """Whoever reads blocks need not look into empty ones."""
    spool = many(5)
    spool.statuses[:] = Status.ALREADY_SENT
    assert list(outgoing_blocks(spool, StopFlag())) == []


def test_a_short_table_keeps_its_order():
    """As long as the ledger is small, rows go out as they come."""
    (block,) = outgoing_blocks(many(2000), StopFlag())
    assert rows_of([block]) == list(range(2000))


def test_a_long_table_comes_in_blocks_by_key(small_blocks):
    """Beyond the first rows, a claim is of neighbours: in blocks that grow up to a bound, ordered by key."""
    spool = many(3000)
    blocks = list(outgoing_blocks(spool, StopFlag()))
    assert rows_of(blocks[:1]) == list(range(100))
    assert all(keys_of(block) == sorted(keys_of(block)) for block in blocks[1:])
    sizes = [len(block) for block in blocks]
    assert (sizes[0], max(sizes), sizes[:-1]) == (100, 400, sorted(sizes[:-1]))
    assert sorted(messages_in(blocks)) == sorted(messages_in(outgoing_blocks(spool, StopFlag(), keep_order=True)))


def test_a_long_table_can_keep_its_order(small_blocks):
    """Where the order is wanted, every block has it."""
    assert rows_of(outgoing_blocks(many(1000), StopFlag(), keep_order=True)) == list(range(1000))


def test_a_task_that_is_to_stop_gathers_no_large_block(small_blocks):
    """Told to stop, what is read is handed over at once: time is short."""
    stop = StopFlag()
    blocks = outgoing_blocks(many(3000), stop)
    for _ in range(8):
        assert len(next(blocks)) >= 100
    stop.set()
    assert {len(block) for block in blocks} == {100}


def test_long_texts_make_smaller_blocks(small_blocks, monkeypatch):
    """A block is bounded by the bytes of its texts, too."""
    monkeypatch.setattr(blocks_module, "MAX_BLOCK_BYTES", 1000)
    assert {len(block) for block in outgoing_blocks(many(3000), StopFlag())} == {100}


@pytest.mark.skipif(pa.default_memory_pool().backend_name == "system", reason="Arrow has no memory of its own here")
@pytest.mark.parametrize("keep_order", [True, False])
def test_a_block_takes_none_of_the_memory_that_arrow_keeps(keep_order):
    """The system takes back the room of a block that was sent; Arrow would keep it, and take more for the next one."""
    spool = many(20_000)
    before = pa.total_allocated_bytes()
    for block in outgoing_blocks(spool, StopFlag(), keep_order=keep_order):
        assert len(block) >= 10_000
    assert pa.total_allocated_bytes() <= before
