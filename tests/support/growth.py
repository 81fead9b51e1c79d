"""How the time of a function grows with its input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 3
_SHORTEST = 0.005
"""Seconds below which a measurement is mostly noise."""


def grows_in_proportion(run: Callable[[str], object], text: str) -> bool:
    """Return whether a text takes some ten times as long as a tenth of it, and not a hundred times as long.

    The least CPU time of a few tries counts, since a busy machine makes each of them longer.
    """
    tenth, whole = (min(_seconds(run, part) for _ in range(_TRIES)) for part in (text[: len(text) // 10], text))
    return whole < 40 * max(tenth, _SHORTEST)


def _seconds(run: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began
