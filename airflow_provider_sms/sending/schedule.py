"""The schedule of a pass: which requests, new or retried, may be posted now, and when the next one may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.sending.request_batch import RequestBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sms.sending.request_batch import Chunks
    from airflow_provider_sms.sending.stop_conditions import StopConditions

DEFER_SECONDS = 1.0
"""Seconds until a request that a pause or the ledger held back is tried again."""


class Schedule:
    """Says which requests go next, as fast and as many at once as is allowed, and keeps those that wait."""

    def __init__(self, stop_conditions: StopConditions, *, concurrency: int, max_per_second: float | None) -> None:
        self.waiting: list[RequestBatch] = []
        """The requests that wait to go again."""
        self._stop_conditions = stop_conditions
        self._concurrency = concurrency
        self._limiter = RateLimiter(max_per_second)

    def retry(self, batch: RequestBatch, at: float) -> None:
        """Schedule a request again: the service asked for a wait, or a pause or a busy ledger kept it back."""
        batch.due = at
        self._limiter.hold(at)
        self.waiting.append(batch)

    def next_wakeup(self, now: float, in_flight: int, *, more: bool) -> float:
        """Return the seconds until a request may go; infinite where only the end of another one changes that."""
        paced = max(self._limiter.delay(now), self._stop_conditions.caution.delay(now))
        waits = [max(batch.due - now, paced) for batch in self.waiting] if in_flight < self._limit else []
        if more and self._free_slots(in_flight) > 0:
            waits.append(paced)
        return max(0.0, min(waits, default=float("inf")))

    def due(self, chunks: Chunks, now: float, in_flight: int, claiming: Callable[[], bool]) -> Iterator[RequestBatch]:
        """Yield the requests that may go now.

        :param in_flight: how many requests are in flight before the first of these.
        :param claiming: returns whether there may be another one.
        """
        if self._stop_conditions.caution.delay(now) > 0:
            return
        for batch in [batch for batch in self.waiting if batch.due <= now]:
            if claiming() and in_flight < self._limit and self._limiter.allowed(now, 1):
                self.waiting.remove(batch)
                if self._may_go(batch, now):
                    in_flight += 1
                    yield batch
        # Nothing is read until something may go: outcomes have to be recorded meanwhile.
        for _ in range(self._limiter.allowed(now, self._free_slots(in_flight))):
            if not claiming() or self._limiter.delay(now) > 0 or not chunks.any:
                break
            batch = RequestBatch(chunks.take())
            if self._may_go(batch, now):
                in_flight += 1
                yield batch

    def _free_slots(self, in_flight: int) -> int:
        """Return how many more requests there may be; one that waits keeps its slot."""
        return self._limit - in_flight - len(self.waiting)

    @property
    def _limit(self) -> int:
        """How many requests may be in flight at once: a single one while the responses to others are lost."""
        return 1 if self._stop_conditions.caution.on else self._concurrency

    def _may_go(self, batch: RequestBatch, now: float) -> bool:
        """Return whether a request may go; messages that are outside of their hours are left to a later attempt."""
        late = self._stop_conditions.too_late(batch.messages)
        if late:
            batch.keep([place for place in range(len(batch.messages)) if place not in late])
        if not batch.messages:
            return False
        self._limiter.take(now)
        return True


class RateLimiter:
    """Spaces requests evenly, and holds all of them back where one was turned away.

    :param per_second: the most requests a second; None means no limit.
    """

    def __init__(self, per_second: float | None) -> None:
        self._interval = 0.0 if per_second is None else 1.0 / per_second
        self._next = 0.0

    def hold(self, until: float) -> None:
        """Let no request go before a time: the service asked for a wait, or cannot be reached."""
        self._next = max(self._next, until)

    def delay(self, now: float) -> float:
        """Return the seconds until a request may go; 0 when one may go now."""
        return max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Count one request that goes now."""
        if self._interval:
            self._next = max(self._next, now) + self._interval

    def allowed(self, now: float, wanted: int) -> int:
        """Return how many of the wanted requests may go now: all, none, or one where they are spaced."""
        if self._next > now or wanted <= 0:
            return 0
        return wanted if self._interval == 0.0 else min(wanted, 1)
