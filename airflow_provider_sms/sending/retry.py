"""How long to wait before a request that was surely not processed is posted again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter, bounded in number and length.

    Before attempt ``n + 1`` the wait is uniform between 0 and ``min(longest, base * 2 ** (n - 1))`` seconds; the first
    is at most ``base``. What the service asks for by ``Retry-After`` is waited in its place, capped.

    :param attempts: POSTs of one request in all, at least 1.
    :param base: seconds, the longest first wait.
    :param longest: seconds, the longest wait.
    :param longest_retry_after: seconds, the most that the service is granted.
    :param random: the source of the jitter.
    """

    attempts: int = 10
    base: float = 1.0
    longest: float = 60.0
    longest_retry_after: float = 300.0
    random: random.Random = field(default_factory=random.Random)

    @property
    def attempts_beside_others(self) -> int:
        """POSTs in all of a request that is turned away while the service takes others: those wait with it."""
        return 3 * self.attempts

    def wait(self, attempt: int, retry_after: float | None = None) -> float | None:
        """Give the seconds to wait after a failed attempt; None when there is to be no other.

        :param attempt: how many POSTs there were, at least 1.
        :param retry_after: seconds that the service asked for; None where it did not.
        """
        if attempt >= self.attempts:
            return None
        if retry_after is not None:
            return min(retry_after, self.longest_retry_after)
        return self.random.uniform(0.0, min(self.longest, self.base * 2.0 ** (attempt - 1)))
