from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
from support.sending import people

from airflow_provider_sms.messages.blocks import Block, BlockBuilder
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.messages.prepare import parts_of
from airflow_provider_sms.messages.prepared import PreparedBatch


def prepared(messages, num_rows=None):
    return PreparedBatch(
        num_rows=len(messages) if num_rows is None else num_rows,
        row_column=np.array([m.row for m in messages], np.int64),
        destination_column=pa.array([m.destination for m in messages], pa.string()),
        content_column=pa.array([m.content for m in messages], pa.string()),
        part_column=parts_of(pa.array([m.content for m in messages], pa.string())),
        keys=[m.key for m in messages],
        rejected=[],
        rejected_numbers=[],
    )


def gathered(*batches, until=100, by_key):
    builder = BlockBuilder()
    for batch in batches:
        builder.add(prepared(batch))
    return builder.build(until, by_key=by_key)


def numbered(messages):
    return [message._replace(row=row) for row, message in enumerate(messages)]


def everything(block):
    return block.messages(0, len(block))


@pytest.fixture
def shuffled():
    # A text of their own for each: one that is given to somebody else must show.
    messages = [
        message._replace(content=f"Hi {message.destination}{'!' * 160 * long}", parts=1 + long)
        for long, message in zip(itertools.cycle([False, True]), people(50))
    ]
    random.Random(7).shuffle(messages)
    return numbered(messages)


def test_a_block_gives_its_messages_as_they_came(shuffled):
    """Columns are only a way to keep messages: each comes out whole, with its row."""
    block = gathered(shuffled[:20], shuffled[20:], by_key=False)
    assert everything(block) == shuffled
    assert (block.messages(5, 8), block.keys(5, 8)) == (shuffled[5:8], [m.key for m in shuffled[5:8]])
    assert block.destinations(48, 60) == [m.destination for m in shuffled[48:]]
    assert len(block.keys(48, 60)) == 2


def test_a_block_by_key_has_the_same_messages_in_the_order_of_their_keys(shuffled):
    """The order is the one in which the ledger keeps them, and no message is another's."""
    assert everything(gathered(shuffled[:20], shuffled[20:], by_key=True)) == sorted(shuffled)


@pytest.mark.parametrize("by_key", [True, False])
def test_of_the_same_message_the_first_row_counts(by_key):
    """Repeats are told within the whole block, and the row that comes first is none."""
    first, second = people(2)
    messages = numbered([first, second, first, second, first])
    block = gathered(messages[:2], messages[2:], by_key=by_key)
    repeats = [everything(block)[position].row for position in block.duplicates(0, 5)]
    assert sorted(repeats) == [2, 3, 4]
    assert block.duplicates(0, 1) == []


def test_a_block_of_messages_tells_repeats_too():
    """However a block is made, its repeats are known."""
    first, second = people(2)
    block = Block.of(numbered([first, second, first]))
    assert (block.duplicates(0, 3), block.duplicates(2, 3), block.until) == ([2], [2], 3)


def test_a_block_may_be_empty():
    """Rows of which none is valid give a block without messages, that still says how far was read."""
    block = gathered([], until=3, by_key=True)
    assert (len(block), everything(block), block.until) == (0, [], 3)
    assert Block.of([]).until == 0


def test_a_message_to_groups_has_no_destination():
    """What is no number stays none."""
    message = Outgoing(b"k" * 16, None, "Hi \ud83d")
    assert everything(Block.of([message])) == [message]


@pytest.mark.skipif(pa.default_memory_pool().backend_name == "system", reason="Arrow has no memory of its own here")
@pytest.mark.parametrize("by_key", [True, False])
def test_a_block_takes_none_of_the_memory_that_arrow_keeps(by_key):
    """The system takes back the room of a block that was sent; Arrow would keep it, and take more for the next one."""
    before = pa.total_allocated_bytes()
    block = gathered(people(1000), people(1000, 1000), by_key=by_key)
    assert len(block) == 2000
    assert pa.total_allocated_bytes() <= before
