"""Blocks: many messages as columns, in which they wait until they are claimed by the hundred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import KEY_BYTES
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.recipients.columns import places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.messages.prepared import PreparedBatch


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """Messages as columns of one length."""

    key_bytes: bytes
    """The keys one after the other, 16 bytes each."""
    destination_column: list[str | None] | pa.Array
    """Digits with country code; None for a group."""
    content_column: list[str] | pa.Array
    row_column: npt.NDArray[np.int64]
    """Indices in the source."""
    part_column: list[int | None] | npt.NDArray[np.int32]
    """SMS parts of each; None for a group."""
    is_duplicate: npt.NDArray[np.bool_]
    """Whether a message has the key of an earlier one of the block."""
    until: int
    """Every row of the source before this one is in this block or in an earlier one, or has no message."""
    suppressed: Sequence[bytes] = ()
    """The keys of the rows since the previous block whose number is suppressed; they are not in the block."""

    @classmethod
    def of(cls, messages: Iterable[Outgoing]) -> Self:
        """Return a block of messages, in their order."""
        messages = list(messages)
        first: dict[bytes, int] = {}
        places = [first.setdefault(message.key, place) for place, message in enumerate(messages)]
        return cls(
            b"".join(message.key for message in messages),
            [message.destination for message in messages],
            [message.content for message in messages],
            np.array([message.row for message in messages], np.int64),
            [None if message.destination is None else count_parts(message.content) for message in messages],
            np.array(places, np.int64) != np.arange(len(messages)),
            max((message.row + 1 for message in messages), default=0),
        )

    def __len__(self) -> int:
        return len(self.row_column)

    def keys(self, start: int, stop: int) -> list[bytes]:
        """Return the keys of the messages in a range of positions."""
        keys: list[bytes] = np.frombuffer(self.key_bytes, f"V{KEY_BYTES}")[start:stop].tolist()
        return keys

    def destinations(self, start: int, stop: int) -> list[str | None]:
        """Return the destinations of the messages in a range."""
        return _listed(self.destination_column[start:stop])

    def columns(self, start: int, stop: int) -> MessageColumns:
        """Return the messages in a range as columns."""
        return MessageColumns(
            self.keys(start, stop),
            self.destinations(start, stop),
            _listed(self.content_column[start:stop]),
            self.row_column[start:stop].tolist(),
            _listed(self.part_column[start:stop]),
        )

    def messages(self, start: int, stop: int) -> list[Outgoing]:
        """Return the messages in a range."""
        return list(self.columns(start, stop))

    def duplicates(self, start: int, stop: int) -> list[int]:
        """Return the positions of the messages in a range that are duplicates of an earlier one in the block."""
        positions: list[int] = (np.flatnonzero(self.is_duplicate[start:stop]) + start).tolist()
        return positions


class BlockBuilder:
    """Collects prepared batches into one block."""

    def __init__(self) -> None:
        self._keys = bytearray()
        self._destinations: list[pa.Array] = []
        self._contents: list[pa.Array] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._parts: list[npt.NDArray[np.int32]] = []
        self.rows = 0
        self._suppressed: list[bytes] = []
        self.nbytes = 0
        """Bytes of the texts."""

    def add(self, batch: PreparedBatch, suppressed: Sequence[bytes] = ()) -> None:
        """Add a batch.

        :param suppressed: keys of the messages that were left out of the batch because their numbers are suppressed.
        """
        self._suppressed += suppressed
        self._keys += b"".join(batch.keys)
        self._destinations.append(batch.destination_column)
        self._contents.append(batch.content_column)
        self._rows.append(batch.row_column)
        self._parts.append(batch.part_column)
        self.rows += batch.num_rows
        self.nbytes += batch.content_column.nbytes

    def build(self, until: int, *, by_key: bool) -> Block:
        """Return the block.

        :param until: the row of the source up to which batches were added.
        :param by_key: order the messages by their keys; otherwise they keep the order of the source.
        """
        halves = np.frombuffer(self._keys, ">u8").reshape(-1, 2)
        # The order is stable: among messages with the same key, the first one comes first.
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ordered = halves[order]
        duplicate = np.zeros(len(order), np.bool_)
        duplicate[1:] = (ordered[1:] == ordered[:-1]).all(axis=1)
        rows, parts = np.concatenate(self._rows), np.concatenate(self._parts)
        if by_key:
            chosen = places(order)
            destinations, contents = _joined(self._destinations, chosen), _joined(self._contents, chosen)
            keys = ordered.tobytes()
            return Block(keys, destinations, contents, rows[order], parts[order], duplicate, until, self._suppressed)
        destinations, contents = _joined(self._destinations), _joined(self._contents)
        in_place = np.empty_like(duplicate)
        in_place[order] = duplicate
        return Block(bytes(self._keys), destinations, contents, rows, parts, in_place, until, self._suppressed)


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
