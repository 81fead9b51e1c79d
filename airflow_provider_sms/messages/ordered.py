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
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[places] == values
    return found
