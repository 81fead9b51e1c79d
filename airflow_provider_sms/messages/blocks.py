"""Blocks: many messages as columns, in which they wait until they are claimed by the hundred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import KEY_BYTES, key_bytes, key_halves
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.recipients.columns import integers, mask, places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.stop_flag import StopFlag

BLOCK_ROWS = 10_000
"""Messages of the blocks at the beginning of a table."""
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Bytes of texts in a block, which is held in memory."""
ROWS_TO_BLOCK = 4
"""Rows read so far for each message of a block: blocks grow with the table."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """Messages as columns of one length; no two of them have the same key."""

    key_bytes: bytes
    """The keys one after the other, 16 bytes each."""
    destination_column: list[str | None] | pa.Array
    """Digits with country code; None for a group."""
    content_column: list[str] | pa.Array
    row_column: npt.NDArray[np.int64]
    """Indices in the source."""
    part_column: list[int | None] | npt.NDArray[np.int32]
    """SMS parts of each; None for a group."""

    @classmethod
    def of(cls, messages: Iterable[Outgoing]) -> Self:
        """Return a block of messages, in their order."""
        messages = list(messages)
        return cls(
            b"".join(message.key for message in messages),
            [message.destination for message in messages],
            [message.content for message in messages],
            np.array([message.row for message in messages], np.int64),
            [None if message.destination is None else count_parts(message.content) for message in messages],
        )

    def __len__(self) -> int:
        return len(self.row_column)

    def keys(self, start: int, stop: int) -> list[bytes]:
        """Return the keys of the messages in a range of positions."""
        keys: list[bytes] = np.frombuffer(self.key_bytes, f"V{KEY_BYTES}")[start:stop].tolist()
        return keys

    def columns(self, start: int, stop: int) -> MessageColumns:
        """Return the messages in a range as columns."""
        return MessageColumns(
            self.keys(start, stop),
            _listed(self.destination_column[start:stop]),
            _listed(self.content_column[start:stop]),
            self.row_column[start:stop].tolist(),
            _listed(self.part_column[start:stop]),
        )

    def messages(self, start: int, stop: int) -> list[Outgoing]:
        """Return the messages in a range."""
        return list(self.columns(start, stop))


def outgoing_blocks(
    spool: CheckedSpool,
    stop: StopFlag,
    *,
    keep_order: bool = False,
    most: Status = Status.FREE,
    held: Callable[[Sequence[bytes]], Collection[bytes]] | None = None,
) -> Iterator[Block]:
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
    some: list[tuple[npt.NDArray[np.int64], pa.RecordBatch]] = []
    for checked in spool.batches():
        rows, columns = checked.where(checked.statuses <= most)
        if held is not None and len(rows):
            keys = columns.column("key").to_pylist()
            taken = held(keys)
            free = np.array([key not in taken for key in keys], np.bool_)
            rows, columns = rows[free], columns.filter(mask(free))
        some.append((rows, columns))
        read, gathered = read + len(checked.statuses), gathered + len(rows)
        nbytes += columns.column("content").nbytes
        wanted = BLOCK_ROWS if keep_order else min(read // ROWS_TO_BLOCK, MAX_BLOCK_ROWS)
        if gathered and (gathered >= wanted or nbytes >= MAX_BLOCK_BYTES or stop.is_set()):
            yield _block(some, by_key=not keep_order and read > BLOCK_ROWS)
            nbytes = gathered = 0
    if gathered:
        yield _block(some, by_key=not keep_order and read > BLOCK_ROWS)


def _block(some: list[tuple[npt.NDArray[np.int64], pa.RecordBatch]], *, by_key: bool) -> Block:
    """Return a block of these messages, which are released, ordered by their keys or as they are."""
    rows = np.concatenate([rows for rows, _ in some])
    keys = b"".join(key_bytes(columns.column("key")) for _, columns in some)
    parts = np.concatenate([integers(columns.column("parts")) for _, columns in some])
    destinations = [columns.column("destination") for _, columns in some]
    contents = [columns.column("content") for _, columns in some]
    some.clear()
    if not by_key:
        return Block(keys, _joined(destinations), _joined(contents), rows, parts)
    order = np.argsort(key_halves(keys)[:, 0].byteswap().view(np.uint64))
    keys = np.frombuffer(keys, f"V{KEY_BYTES}")[order].tobytes()
    chosen = places(order)
    return Block(keys, _joined(destinations, chosen), _joined(contents, chosen), rows[order], parts[order])


def _joined(pieces: list[pa.Array], chosen: pa.Array | None = None) -> pa.Array:
    """Return arrays as one, in an order, and release them.

    A block is as large as everything else in memory, and Arrow's own allocator would keep the memory of earlier blocks;
    the system's allocator gives it back.
    """
    pool = pa.system_memory_pool()
    joined = pa.concat_arrays(pieces, memory_pool=pool)
    pieces.clear()
    pa.default_memory_pool().release_unused()
    return joined if chosen is None else pc.take(joined, chosen, memory_pool=pool)


def _listed(column: list[Any] | pa.Array | npt.NDArray[Any]) -> list[Any]:
    if isinstance(column, list):
        return column
    values: list[Any] = column.tolist()
    return values
