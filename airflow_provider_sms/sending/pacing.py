"""How many requests may go out now."""

from __future__ import annotations


class Pacer:
    """Spaces requests evenly, and holds all of them back where one was turned away.

    :param per_second: requests a second at the most; None for no limit.
    """

    def __init__(self, per_second: float | None) -> None:
        self._interval = 0.0 if per_second is None else 1.0 / per_second
        self._next = 0.0

    def hold(self, until: float) -> None:
        """Let nothing go before a time: the service asked for it, or cannot be reached."""
        self._next = max(self._next, until)

    def delay(self, now: float) -> float:
        """Give the seconds until a request may go, 0 when one may go now."""
        return max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Count one request that goes now."""
        if self._interval:
            self._next = max(self._next, now) + self._interval

    def allowed(self, now: float, wanted: int) -> int:
        """Give how many of the wanted requests may go now: all, none, or one where they are spaced."""
        if self._next > now or wanted <= 0:
            return 0
        return wanted if self._interval == 0.0 else min(wanted, 1)
