"""Sets of 64-bit integers that outgrow memory, such as halves of message keys or phone numbers: on disk, in order."""

from __future__ import annotations

import tempfile
import weakref
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

T = TypeVar("T", np.uint64, np.int64)

MOST_IN_MEMORY = 100_000
"""Integers that stay in memory: 800 KB, which a task with few rows need not write to a disk."""
_AT_ONCE = 1_000_000
_MOST_PARTS = 16
"""The most parts in which a file is counted: it is read once for each."""
_SAMPLE = 1_000
"""One integer out of this many is looked at to find the bounds of the parts."""


def key_halves(keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each message key as an integer: enough to tell the keys of a table apart.

    :param keys: of 16 bytes each.
    """
    halves: npt.NDArray[np.uint64] = np.frombuffer(b"".join(keys), np.uint64)[::2].copy()
    return halves


def are_in(ordered: npt.NDArray[T], values: npt.NDArray[T]) -> npt.NDArray[np.bool_]:
    """Return which of the values are in an array in ascending order; NumPy's own ``isin`` would sort it each time."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    # Among millions, values in order are looked up in less than half the time: each is near the one before.
    order = np.argsort(values)
    looked_up = values[order]
    places = np.minimum(np.searchsorted(ordered, looked_up), len(ordered) - 1)
    found = np.empty(len(values), np.bool_)
    found[order] = ordered[places] == looked_up
    return found


class DiskBackedIntegers(Generic[T]):
    """Integers of 64 bits, each as many times as it was added.

    A few stay in memory. More are kept, 8 bytes each, in an unnamed file in the folder for temporary files. The file
    disappears with this object or its process, however that ends. It is mapped into memory: the system keeps as much
    of it there as there is room for.

    :param kind: ``np.int64`` or ``np.uint64``.
    :param most_in_memory: integers that may stay in memory.
    """

    def __init__(self, kind: type[T], most_in_memory: int = MOST_IN_MEMORY) -> None:
        self._kind: type[T] = kind
        self._most_in_memory = most_in_memory
        self._waiting: list[npt.NDArray[T]] = []
        self._length = 0
        self._file: IO[bytes] | None = None
        self._ordered: npt.NDArray[T] | None = None

    def __len__(self) -> int:
        return self._length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, values: npt.NDArray[T]) -> None:
        """Add integers, in any order.

        :raises OSError: there is no room for the file.
        """
        if self._ordered is not None and self._file is None:
            self._waiting = [self._ordered]
        self._ordered = None
        self._waiting.append(np.array(values, self._kind))
        self._length += len(values)
        if self._file is not None or self._length > self._most_in_memory:
            self._spill()

    def sorted(self) -> npt.NDArray[T]:
        """Return all integers in ascending order, in an array that is readable until more are added or this is closed.

        :raises OSError: there is no room for the file.
        """
        if self._ordered is None:
            self._ordered = self._all()
            self._ordered.sort()
            self._waiting = []
        return self._ordered

    def count_distinct(self) -> int:
        """Return the number of different integers."""
        if self._file is not None and self._ordered is None and self._length > _AT_ONCE:
            return self._count_in_parts(self._file)
        ordered = self.sorted()
        count = min(len(ordered), 1)
        for start in range(0, len(ordered), _AT_ONCE):
            some = ordered[start : start + _AT_ONCE + 1]
            count += int(np.count_nonzero(some[1:] != some[:-1]))
        return count

    def contains(self, values: npt.NDArray[T]) -> npt.NDArray[np.bool_]:
        """Return which of the values were added."""
        return are_in(self.sorted(), values)

    def close(self) -> None:
        """Release all integers and their room on disk."""
        self._waiting, self._ordered, self._length = [], None, 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _count_in_parts(self, file: IO[bytes]) -> int:
        """Count the distinct integers of one range after another: sorting all at once would load the whole file."""
        # Copies: a view would keep its whole piece.
        sample = np.concatenate([piece[::_SAMPLE].copy() for piece in self._pieces(file)])
        sample.sort()
        parts = min(-(-self._length // _AT_ONCE), _MOST_PARTS)
        bounds = sample[[len(sample) * part // parts for part in range(1, parts)]]
        count = 0
        for part in range(parts):
            found = []
            for piece in self._pieces(file):
                inside = np.ones(len(piece), np.bool_)
                if part > 0:
                    inside &= piece >= bounds[part - 1]
                if part < len(bounds):
                    inside &= piece < bounds[part]
                found.append(piece[inside])
            some = np.concatenate(found)
            some.sort()
            count += min(len(some), 1) + int(np.count_nonzero(some[1:] != some[:-1]))
        return count

    def _pieces(self, file: IO[bytes]) -> Iterator[npt.NDArray[T]]:
        """Read the file from beginning to end, where the next integers will be written."""
        file.seek(0)
        while piece := file.read(_AT_ONCE * np.dtype(self._kind).itemsize):
            yield np.frombuffer(piece, self._kind)

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as this object
            weakref.finalize(self, self._file.close)
        for values in self._waiting:
            self._file.write(values.tobytes())
        self._waiting = []

    def _all(self) -> npt.NDArray[T]:
        if self._file is None:
            return np.concatenate([np.empty(0, self._kind), *self._waiting])
        self._file.flush()
        mapped: np.memmap[Any, np.dtype[T]] = np.memmap(self._file, self._kind, "r+", shape=(self._length,))
        return mapped.view(np.ndarray)
