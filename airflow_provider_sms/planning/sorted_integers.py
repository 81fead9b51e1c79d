"""Many 64-bit integers, such as phone numbers or halves of message keys, in memory: 8 bytes each.

Apart from the check, the suppression and the comparison of texts, which share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt


def distinct(pieces: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the different integers of arrays, in ascending order; NumPy's ``unique`` takes twice the memory."""
    ordered = np.concatenate([np.empty(0, np.int64), *pieces])
    ordered.sort()
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def are_in(ordered: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which of the values are in an array in ascending order; NumPy's ``isin`` would sort it each time."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    # Among millions, values in order are looked up in less than half the time: each is near the one before.
    order = np.argsort(values)
    looked_up = values[order]
    places = np.minimum(np.searchsorted(ordered, looked_up), len(ordered) - 1)
    found = np.empty(len(values), np.bool_)
    found[order] = ordered[places] == looked_up
    return found
