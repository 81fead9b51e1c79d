"""Which requests may go out now: what waits to go again, and the next of the backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.sending.request_batch import RequestBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sms.sending.pending import PendingMessages
    from airflow_provider_sms.sending.sender import SendingOptions
    from airflow_provider_sms.sending.stop_conditions import Brakes


HOLD_SECONDS = 1.0
"""How long a request waits that is held back until something changes."""


class RequestScheduler:
    """Gives the next requests, as fast and as many as is allowed.

    :param options: how many at once, how many a second, and how large.
    :param brakes: what may keep a request back.
    """

    def __init__(self, options: SendingOptions, brakes: Brakes) -> None:
        self.waiting: list[RequestBatch] = []
        self._options = options
        self._brakes = brakes
        self._pacer = RateLimiter(options.max_requests_per_second)

    def again(self, batch: RequestBatch, at: float) -> None:
        """Let a request go once more, and no other one before it: the service asked for it, or cannot be reached."""
        batch.due = at
        self._pacer.hold(at)
        self.waiting.append(batch)

    def hold(self, batch: RequestBatch, at: float) -> None:
        """Let a request go later, because something keeps it back that may change at any time."""
        batch.due = at
        self.waiting.append(batch)

    def free(self, flying: int) -> int:
        """Give how many more requests there may be.

        :param flying: those under way.
        """
        return self._most - flying - len(self.waiting)

    @property
    def _most(self) -> int:
        """How many requests may be under way at once: a single one while the answers of others are lost."""
        return 1 if self._brakes.caution.on else self._options.concurrency

    def patience(self, now: float, flying: int, *, more: bool) -> float:
        """Give the seconds until a request may go; without bound where only the end of another one changes that.

        :param more: whether the backlog has any.
        """
        paced = max(self._pacer.delay(now), self._brakes.caution.delay(now))
        waits = [max(batch.due - now, paced) for batch in self.waiting] if flying < self._most else []
        if more and self.free(flying) > 0:
            waits.append(paced)
        return max(0.0, min(waits, default=float("inf")))

    def next(
        self, backlog: PendingMessages, now: float, flying: int, claiming: Callable[[], bool]
    ) -> Iterator[RequestBatch]:
        """Give the requests that may go now, one by one.

        :param flying: requests under way before the first of these.
        :param claiming: says whether there may be another one.
        :raises Exception: what the source or the ledger raises.
        """
        if self._brakes.caution.delay(now) > 0:
            return
        for batch in [batch for batch in self.waiting if batch.due <= now]:
            if claiming() and flying < self._most and self._pacer.allowed(now, 1):
                self.waiting.remove(batch)
                if self._may_go(batch, backlog, now, flying):
                    flying += 1
                    yield batch
        # Not until something may go: what is under way is to be recorded meanwhile.
        for _ in range(self._pacer.allowed(now, self.free(flying))):
            if not claiming():
                break
            batch = RequestBatch(*backlog.take(self._options.chunk_size))
            if not batch.messages:
                break
            if self._may_go(batch, backlog, now, flying):
                flying += 1
                yield batch

    def _may_go(self, batch: RequestBatch, backlog: PendingMessages, now: float, flying: int) -> bool:
        """Ask the brakes; what they keep back for longer than this send counts as not sent."""
        late = self._brakes.too_late(batch.messages)
        if late:
            backlog.count_unsent(late, batch.take_over)
            kept_back = {outgoing.key for outgoing in late}
            batch.messages = [outgoing for outgoing in batch.messages if outgoing.key not in kept_back]
        if not batch.messages:
            return False
        if not self._brakes.affords(batch, others=flying > 0):
            self.hold(batch, now + HOLD_SECONDS)
            return False
        self._pacer.take(now)
        return True


class RateLimiter:
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
