"""Looking values up in an array that is in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T", np.uint64, np.int64)


def are_in(ordered: npt.NDArray[T], values: npt.NDArray[T]) -> npt.NDArray[np.bool_]:
    """Say which of the values are in an array that is in order; numpy's own isin would sort that one each time."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    # Looked up in their order, each is near the one before: less than half the time, in millions.
    order = np.argsort(values)
    looked_up = values[order]
    places = np.minimum(np.searchsorted(ordered, looked_up), len(ordered) - 1)
    found = np.empty(len(values), np.bool_)
    found[order] = ordered[places] == looked_up
    return found
