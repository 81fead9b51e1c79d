"""The checked spool: every row of a table as it was checked, in a nameless file from which plan, send and report read.

So what was checked is what is sent and reported, in memory that does not grow with the table. The file is unlinked from
the start: no other process can open it, and it is gone with this one, however that ends. The messages to send come out
of it in blocks by key, since a ledger claims neighbours faster.
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.messages.keys import KEY_TYPE, key_bytes, key_halves, key_list
from airflow_provider_sms.messages.message import Outgoing
from airflow_provider_sms.recipients.columns import are_in, chosen, mask, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from airflow_provider_sms.stop_flag import StopFlag

SCHEMA = pa.schema(
    [
        ("destination", pa.string()),
        ("content", pa.string()),
        ("key", KEY_TYPE),
        ("parts", pa.int32()),
        ("is_ucs2", pa.bool_()),
        ("column", pa.string()),
        ("reason", pa.string()),
    ]
)
"""The columns of checked rows. Those of a message have a key, and those without one have a reason and the column at
fault; their destination is as it was written where it is no number."""

_BUFFER = 1 << 20
_COMPRESSION = "lz4"
"""For a million rows writing and reading take 0.18 s of CPU at 40 bytes a row, against 0.07 s and 131 bytes without."""
_KEYS_AT_ONCE = 3_000_000
"""Keys in memory, 16 bytes each, while duplicates are looked for."""

BLOCK_ROWS = 10_000
"""Messages of the blocks at the beginning of a table."""
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Bytes of texts in a block, which is held in memory."""
ROWS_TO_BLOCK = 4
"""Rows read so far for each message of a block: blocks grow with the table."""
_REQUESTS_AT_ONCE = 10
"""Requests whose columns are made lists at a time."""


class Status(IntEnum):
    """What a row was when it was checked: without a message to send, held by somebody, or free."""

    FREE = 0
    AGAIN = 1
    """It may have been sent, and is sent again."""
    UNKNOWN = 2
    """It may have been sent, or another process is sending it."""
    ALREADY_SENT = 3
    """Another attempt has sent it."""
    ACCEPTED = 4
    """This attempt has sent it, before a wait."""
    SUPPRESSED = 5
    DUPLICATE = 6
    """An earlier row has the same message."""
    INVALID = 7


def rows_by_status(statuses: npt.NDArray[np.uint8]) -> dict[Status, int]:
    """Return how many rows have each status."""
    return {Status(value): int(rows) for value, rows in enumerate(np.bincount(statuses))}


class CheckedRows(NamedTuple):
    """Some rows of the table, in its order."""

    first: int
    """The index in the source of the first of them, from 0."""
    columns: pa.RecordBatch
    statuses: npt.NDArray[np.uint8]
    """Their :class:`Status`, which can be set here."""

    def where(self, which: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], pa.RecordBatch]:
        """Return some of the rows: their indices in the source, and their columns."""
        return np.flatnonzero(which) + self.first, self.columns if which.all() else self.columns.filter(mask(which))


class CheckedSpool:
    """Checked rows, written once and read as often as needed. Close it to free its room on disk."""

    def __init__(self) -> None:
        self.statuses = np.empty(0, np.uint8)
        """The status of each row, in memory, a byte for each, once all are added."""
        self._rows = 0
        with naming_folder():
            self._file = tempfile.TemporaryFile(prefix="airflow-provider-sms-", buffering=_BUFFER)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._writer = pa.ipc.new_stream(self._file, SCHEMA, options=pa.ipc.IpcWriteOptions(compression=_COMPRESSION))

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows after those that were added before."""
        with naming_folder():
            self._writer.write_batch(rows)
        self._rows += len(rows)

    def finish(self) -> None:
        """End writing, and tell invalid rows and duplicates from the others, which are FREE until they are decided."""
        with naming_folder():
            self._writer.close()
            self._file.flush()
        self.statuses = np.full(self._rows, Status.INVALID, np.uint8)
        shares = 1 << (self._rows // _KEYS_AT_ONCE).bit_length()
        repeated = np.sort(np.concatenate([self._repeated(share, shares) for share in range(shares)]))
        seen = np.zeros(len(repeated), np.bool_)
        for rows, keys in self._keys():
            self.statuses[rows] = Status.FREE
            again = np.flatnonzero(are_in(repeated, keys))
            found, first = np.unique(np.searchsorted(repeated, keys[again]), return_index=True)
            free = again[first[~seen[found]]]
            seen[found] = True
            self.statuses[rows[again]] = Status.DUPLICATE
            self.statuses[rows[free]] = Status.FREE

    def _repeated(self, share: int, shares: int) -> npt.NDArray[np.int64]:
        """Return the keys that several rows have, of one share: keys are digests, so that shares are about as large."""
        keys = np.concatenate(
            [each[each & (shares - 1) == share] for _, each in self._keys()] or [np.empty(0, np.int64)]
        )
        keys.sort()
        return np.unique(keys[1:][keys[1:] == keys[:-1]])

    def batches(self) -> Iterator[CheckedRows]:
        """Yield the rows in the batches and in the order in which they were added; each call starts anew."""
        first = 0
        for batch in self._read(pa.ipc.IpcReadOptions()):
            yield CheckedRows(first, batch, self.statuses[first : first + len(batch)])
            first += len(batch)

    def _keys(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield the rows that have a key, and the first halves of their keys."""
        first = 0
        for batch in self._read(pa.ipc.IpcReadOptions(included_fields=[SCHEMA.get_field_index("key")])):
            keys = batch.column("key")
            yield np.flatnonzero(chosen(keys.is_valid())) + first, key_halves(key_bytes(keys.drop_null()))[:, 0]
            first += len(batch)

    def _read(self, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
        source = io.BufferedReader(_Reading(self._file.fileno()), _BUFFER)
        with pa.PythonFile(source, "r") as file, pa.ipc.open_stream(file, options=options) as stream:
            yield from stream

    def close(self) -> None:
        """Free the room on disk. Nothing can be read afterwards."""
        with suppress(OSError):
            self._file.close()  # what is not written yet need not be


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


class _Reading(io.RawIOBase):
    """The file with a position of its own: several readers share one descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # io calls it with a memoryview
        size = os.preadv(self._descriptor, [buffer], self._position)
        self._position += size
        return size


@contextmanager
def naming_folder() -> Iterator[None]:
    """Turn an error of the disk into one that names the folder."""
    try:
        yield
    except OSError as error:
        # Without a folder that has room for a file, tempfile knows of none.
        folder = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - it is named in an error alone
        raise SourceUnavailableError(
            f"The checked rows cannot be kept in {folder}, the folder for temporary files: "
            f"{error.strerror or type(error).__name__}. Nothing was sent. Make room there, about 50 bytes a row, or "
            "set TMPDIR to a folder that has room"
        ) from None
