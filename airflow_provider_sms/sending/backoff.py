"""How long to wait before a request that was surely not processed is posted again.

:mod:`airflow_provider_sms.sending.response_handler` decides which requests those are, such as one that got a 429.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter, bounded in number and length.

    Before attempt ``n + 1`` the wait is uniform between 0 and ``min(longest, base * 2 ** (n - 1))`` seconds; the first
    is at most ``base``. Where the service asks for a wait with ``Retry-After``, that wait takes its place, capped.

    :param attempts: the most POSTs of one request, at least 1.
    :param base: the longest first wait, in seconds.
    :param longest: the longest wait, in seconds.
    :param longest_retry_after: the longest wait that the service is granted, in seconds.
    :param random: the source of the jitter.
    """

    attempts: int = 10
    base: float = 1.0
    longest: float = 60.0
    longest_retry_after: float = 300.0
    random: random.Random = field(default_factory=random.Random)

    @property
    def attempts_beside_others(self) -> int:
        """The most POSTs of a request that is turned away while the service takes others: these wait when it does."""
        return 3 * self.attempts

    def wait(self, attempt: int, retry_after: float | None = None) -> float | None:
        """Return the seconds to wait after a failed POST; None means that no further one follows.

        :param attempt: how many POSTs there were, at least 1.
        :param retry_after: seconds that the service asked for; None means that it asked for none.
        """
        if attempt >= self.attempts:
            return None
        if retry_after is not None:
            return min(retry_after, self.longest_retry_after)
        return self.random.uniform(0.0, min(self.longest, self.base * 2.0 ** (attempt - 1)))
