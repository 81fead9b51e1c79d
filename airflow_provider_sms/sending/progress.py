"""How far a send is, in words, not too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Progress:
    """Says how far a send is: messages done, of how many, per second, time left.

    :param total: messages in all.
    :param clock: seconds, from any start.
    :param done: messages that were done before it began.
    :param every: seconds between two lines, at least.
    """

    def __init__(self, total: int, clock: Callable[[], float], *, done: int = 0, every: float = 5.0) -> None:
        self._total = total
        self._clock = clock
        self._done = done
        self._every = every
        self._began = clock()
        self._said = self._began

    def line(self, done: int, *, paused: bool = False) -> str | None:
        """Give a line for the log; None while the last one is fresh.

        :param paused: whether a person has paused it, so that no time is left that could be told.
        """
        now = self._clock()
        if now - self._said < self._every:
            return None
        self._said = now
        if paused:
            return f"{done} of {self._total} messages done, paused"
        rate = (done - self._done) / (now - self._began)
        left = f"{(self._total - done) / rate:.0f} s left" if rate else "no estimate yet"
        return f"{done} of {self._total} messages done, {rate:.0f} a second, {left}"
