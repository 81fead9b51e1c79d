"""The messages to send, out of the checked spool: in blocks by key, since a ledger claims neighbours faster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import KEY_BYTES, key_bytes, key_halves
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.recipients.columns import mask, places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.stop_flag import StopFlag

BLOCK_ROWS = 10_000
"""Messages of the blocks at the beginning of a table."""
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Bytes of texts in a block, which is held in memory."""
ROWS_TO_BLOCK = 4
"""Rows read so far for each message of a block: blocks grow with the table."""
_ROWS_AT_ONCE = 1_000
"""Messages that are made objects at a time."""


def messages_to_send(
    spool: CheckedSpool,
    stop: StopFlag,
    *,
    keep_order: bool = False,
    most: Status = Status.FREE,
    held: Callable[[Sequence[bytes]], Collection[bytes]] | None = None,
) -> Iterator[Outgoing]:
    """Yield the messages to send.

    A ledger is a tree of keys, and keys are random: a claim writes a page of the tree for each message, unless messages
    are claimed in the order of their keys. So after the first rows, each block is ordered by key. The blocks grow with
    the tree, up to a bound.

    :param stop: ends the collection of a larger block early.
    :param keep_order: yield the messages in the order of the source.
    :param most: the last status, as checked, of the messages that are yielded.
    :param held: takes keys, and returns those that a request holds by now; None means that nobody is asked.
    """
    read = nbytes = gathered = 0
    some: list[pa.RecordBatch] = []
    for checked in spool.batches():
        rows, columns = checked.where(checked.statuses <= most)
        columns = columns.append_column("row", places(rows))
        if held is not None and len(columns):
            keys = columns.column("key").to_pylist()
            taken = held(keys)
            columns = columns.filter(mask(np.array([key not in taken for key in keys], np.bool_)))
        some.append(columns)
        read, gathered = read + len(checked.statuses), gathered + len(columns)
        nbytes += columns.column("content").nbytes
        wanted = BLOCK_ROWS if keep_order else min(read // ROWS_TO_BLOCK, MAX_BLOCK_ROWS)
        if gathered and (gathered >= wanted or nbytes >= MAX_BLOCK_BYTES or stop.is_set()):
            yield from _messages(some, by_key=not keep_order and read > BLOCK_ROWS)
            nbytes = gathered = 0
    yield from _messages(some, by_key=not keep_order and read > BLOCK_ROWS)


def _messages(some: list[pa.RecordBatch], *, by_key: bool) -> Iterator[Outgoing]:
    """Yield the messages of batches, which are released, ordered by their keys or as they are.

    A block is as large as everything else in memory, and Arrow's own allocator would keep the memory of earlier blocks;
    the system's allocator gives it back.
    """
    if not some:
        return
    pool = pa.system_memory_pool()
    block = pa.concat_batches(some, memory_pool=pool)
    some.clear()
    pa.default_memory_pool().release_unused()
    if by_key:
        halves = key_halves(key_bytes(block.column("key")))[:, 0]
        block = pc.take(block, places(np.argsort(halves.byteswap().view(np.uint64))), memory_pool=pool)
    for start in range(0, len(block), _ROWS_AT_ONCE):
        piece = block.slice(start, _ROWS_AT_ONCE)
        # Arrow makes a list of binary values twenty times as slowly as NumPy.
        keys = np.frombuffer(key_bytes(piece.column("key")), f"V{KEY_BYTES}").tolist()
        others = (piece.column(name).to_pylist() for name in Outgoing._fields[1:])
        # As Outgoing makes itself, without a call of Python for each: half of what a message costs here.
        yield from map(partial(tuple.__new__, Outgoing), zip(keys, *others, strict=True))
