"""Many 64-bit integers, such as phone numbers or halves of message keys: in order, on disk."""

from __future__ import annotations

import tempfile
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.messages.spool import naming_folder

if TYPE_CHECKING:
    import numpy.typing as npt


def are_in(ordered: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
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


class IntegersOnDisk:
    """Integers, each as many times as it was added, 8 bytes each in a nameless file that is mapped into memory.

    The system keeps as much of it in memory as there is room for. The file is gone with this object.
    """

    def __init__(self) -> None:
        with naming_folder():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as this object
        weakref.finalize(self, self._file.close)
        self._length = 0
        self._ordered = np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._length

    def add(self, values: npt.NDArray[np.int64]) -> None:
        """Add integers, in any order, before any is looked up.

        :raises SourceUnavailableError: there is no room for the file.
        """
        with naming_folder():
            self._file.write(values.tobytes())
        self._length += len(values)

    def sorted(self) -> npt.NDArray[np.int64]:
        """Return all integers in ascending order, in an array that is readable as long as this object.

        :raises SourceUnavailableError: there is no room for the file.
        """
        if len(self._ordered) < self._length:
            with naming_folder():
                self._file.flush()
            mapped: np.memmap[Any, np.dtype[np.int64]] = np.memmap(self._file, np.int64, "r+", shape=(self._length,))
            self._ordered = mapped.view(np.ndarray)
            self._ordered.sort()
        return self._ordered

    def count_distinct(self) -> int:
        """Return the number of different integers."""
        ordered = self.sorted()
        return min(self._length, 1) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))

    def contains(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the values were added."""
        return are_in(self.sorted(), values)
