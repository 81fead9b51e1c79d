"""The messages to send, out of the checked spool: in blocks by key, since a ledger claims neighbours faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import key_bytes, key_halves, key_list
from airflow_provider_sms.messages.message import Outgoing
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.recipients.columns import mask, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.stop_flag import StopFlag

BLOCK_ROWS = 10_000
"""Messages of the blocks at the beginning of a table."""
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Bytes of texts in a block, which is held in memory."""
ROWS_TO_BLOCK = 4
"""Rows read so far for each message of a block: blocks grow with the table."""
_REQUESTS_AT_ONCE = 10
"""Requests whose columns are made lists at a time."""


def messages_to_send(
    spool: CheckedSpool,
    stop: StopFlag,
    size: int,
    *,
    keep_order: bool = False,
    most: Status = Status.FREE,
    are_free: Callable[[memoryview], npt.NDArray[np.bool_]] | None = None,
) -> Iterator[Outgoing]:
    """Yield the messages to send, those of one request at a time.

    A ledger is a tree of keys, and keys are random: a claim writes a page of the tree for each message, unless messages
    are claimed in the order of their keys. So after the first rows, each block is ordered by key. The blocks grow with
    the tree, up to a bound, unless the task is to stop.

    :param most: the last status, as checked, of the messages that are yielded.
    :param are_free: returns which of some keys no request holds by now; None means that nobody is asked.
    """
    read = nbytes = gathered = 0
    some: list[pa.RecordBatch] = []
    for checked in spool.batches():
        _, columns = checked.where(checked.statuses <= most)
        if are_free is not None and len(columns):
            columns = columns.filter(mask(are_free(key_bytes(columns.column("key")))))
        some.append(columns)
        read, gathered = read + len(checked.statuses), gathered + len(columns)
        nbytes += columns.column("content").nbytes
        wanted = BLOCK_ROWS if keep_order else min(read // ROWS_TO_BLOCK, MAX_BLOCK_ROWS)
        if gathered and (gathered >= wanted or nbytes >= MAX_BLOCK_BYTES or stop.is_set()):
            yield from _requests(some, size, by_key=not keep_order and read > BLOCK_ROWS)
            nbytes, gathered = 0, sum(map(len, some))
    yield from _requests(some, size, by_key=not keep_order and read > BLOCK_ROWS, are_last=True)


def _requests(some: list[pa.RecordBatch], size: int, *, by_key: bool, are_last: bool = False) -> Iterator[Outgoing]:
    """Yield the messages of batches, ordered by their keys or as they are, by request; what fills none is left in them.

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
    whole = len(block) if are_last else len(block) - len(block) % size
    for start in range(0, whole, _REQUESTS_AT_ONCE * size):
        piece = block.slice(start, min(_REQUESTS_AT_ONCE * size, whole - start))
        others = (piece.column(name).to_pylist() for name in ("destination", "content", "parts"))
        columns = [key_list(key_bytes(piece.column("key"))), *others]
        for first in range(0, len(piece), size):
            yield Outgoing(*(column[first : first + size] for column in columns))
    if whole < len(block):
        some.append(pa.concat_batches([block.slice(whole)]))  # a copy, since a slice would keep the block
