"""What slows a send down or ends it early though nobody stopped it: hours, credit, bad answers, lost answers."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import OutageError, ServiceError, TooManyErrorsError
from airflow_provider_sms.messages.parts import count_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.pauses import Pause
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.send_window.window import SendWindow
    from airflow_provider_sms.sending.request_batch import RequestBatch
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)

INSUFFICIENT_CREDITS = "InsufficientCredits"
"""The service's code for a request that the credit does not cover."""

WINDOW_MESSAGES = 1000
"""The last messages whose errors are judged."""
MAX_LOST_ALONE = 2
"""Lost answers to requests that went alone after which a send ends."""

FIRST_JUDGED = 100
"""Fewer messages are not judged: a share of few says little."""


@dataclass(frozen=True, slots=True)
class StopReason:
    """What a send waits for that ended early, with all else in order.

    :param until: when the hours begin again; None: it waits for credit.
    :param credit: the balance that it needs; None: it waits for its hours.
    :param too_little: a balance that the service itself said does not do; None: it did not come to that.
    """

    until: datetime | None = None
    credit: Decimal | None = None
    too_little: Decimal | None = None


class Caution:
    """Keeps an outage from costing more than a handful of requests.

    After an answer that was lost, no request is claimed beside those in flight. Once they have ended, requests go one
    at a time until one is answered; :data:`MAX_LOST_ALONE` lost answers to these end the send. So an outage makes at
    most ``concurrency`` + :data:`MAX_LOST_ALONE` requests unknown, however long it is. Where no answer came since the
    last one was lost, each request goes after a wait, and after the service has answered a free question.

    :param on: whether to begin with one request at a time.
    """

    def __init__(self, *, on: bool = False) -> None:
        self.on = on
        """Whether one request may go at a time."""
        self.asks = False
        """Whether the service is asked a free question before it."""
        self.lost_alone = 0
        """Requests that went alone and whose answer was lost, since the last answer."""
        self.until = 0.0
        """When the next request may go alone, seconds of the sender's monotonic clock."""

    def delay(self, now: float) -> float:
        """Return the seconds until a request may go; 0 where nothing keeps it back.

        :param now: seconds of the sender's monotonic clock.
        """
        return max(0.0, self.until - now) if self.asks else 0.0

    def answered(self, *, alone: bool) -> None:
        """Note an answer of the service.

        :param alone: whether the request went alone: then all may go again. The others were posted before the last
            answer was lost, and say less of how the service is now.
        """
        self.asks = False
        if alone:
            self.on = False
            self.lost_alone = 0

    def lost(self, *, alone: bool) -> OutageError | None:
        """Note an answer that was lost, and return the error that ends the send, where it is one too many.

        :param alone: whether the request went alone.
        """
        self.on = self.asks = True
        self.lost_alone += alone
        if self.lost_alone < MAX_LOST_ALONE:
            return None
        return OutageError(
            "the service's answers are lost one after the other, so no more messages are posted. "
            "The next try sends those that were not"
        )


class Credit:
    """Keeps account of what a send may still cost.

    :param prices: of a part.
    :param planned: credits that the messages to come are estimated to cost in all.
    :param balance: before the first request.
    """

    def __init__(self, prices: Prices, planned: Decimal, balance: Decimal) -> None:
        self.balance = balance
        """As the service last told it."""
        self._prices = prices
        self._planned = planned
        self._under_way: dict[int, Decimal] = {}

    def covers(self, batch: RequestBatch) -> bool:
        """Say whether the balance covers a request beside those under way; if so it is one of them from now on."""
        self.gave_up(batch)
        cost = self._cost(batch.messages)
        if self.balance - sum(self._under_way.values()) < cost:
            return False
        self._under_way[id(batch)] = cost
        return True

    def gave_up(self, batch: RequestBatch) -> None:
        """Take note that a request did not go out."""
        self._under_way.pop(id(batch), None)

    def landed(self, batch: RequestBatch, response: SendResponse | None) -> None:
        """Take note of an answer; None: there was none, or none that tells a balance."""
        cost = self._under_way.pop(id(batch), Decimal(0))
        if response is not None:
            self._planned -= cost
            self.balance = response.remaining_balance

    def needed(self, batch: RequestBatch) -> Decimal:
        """Give the balance that covers this request and all that come after it."""
        return max(self._planned, self._cost(batch.messages))

    def _cost(self, messages: Sequence[Outgoing]) -> Decimal:
        return sum(
            (self._prices.of(m.destination or "", count_parts(m.content)) for m in messages),
            Decimal(0),
        )


class Brakes:
    """Asked before every claim and told of every answer, by the one thread that decides.

    :param window: the hours in which to send; None: any.
    :param credit: the account to keep; None: the service is left to refuse what the credit does not cover.
    :param max_error_rate: share of messages, 0 to 1, that the service may refuse or call faulty among the last
        :data:`WINDOW_MESSAGES`; None: any.
    :param caution: what slows the send down where answers are lost; None: one that begins at full speed.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        window: SendWindow | None = None,
        credit: Credit | None = None,
        max_error_rate: float | None = None,
        caution: Caution | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.halt: StopReason | None = None
        self.paused: Pause | None = None
        self.caution = Caution() if caution is None else caution
        self._window = window
        self._credit = credit
        self._max_error_rate = max_error_rate
        self._clock = clock
        self._next_opening: datetime | None = None
        self._judged: deque[tuple[int, int]] = deque()

    def pulled(self, pause: Pause | None) -> bool:
        """Take note of whether somebody has paused the campaign, and say so."""
        if pause is not None and self.paused is None:
            log.warning("%s paused the campaign: nothing more is claimed until somebody resumes it", pause.paused_by)
        elif pause is None and self.paused is not None:
            log.info("The campaign was resumed")
        self.paused = pause
        return pause is not None

    def too_late(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Give the messages that must not go now, because it is outside of the hours."""
        if self._window is None:
            return []
        now = datetime.fromtimestamp(self._clock(), timezone.utc)
        late: list[Outgoing] = []
        for outgoing in messages:
            opening = self._window.closed_until(now, outgoing.destination)
            if opening is not None:
                late.append(outgoing)
                self._next_opening = min(opening, self._next_opening or opening)
        if late and not self._window.recipient_time_zone:
            self.halt = StopReason(until=self._next_opening)
        return late

    def affords(self, batch: RequestBatch, *, others: bool) -> bool:
        """Say whether the credit covers a request.

        :param others: whether requests are under way, whose answers may tell another balance.
        """
        if self._credit is None or self._credit.covers(batch):
            return True
        if not others:
            self.halt = StopReason(credit=self._credit.needed(batch))
        return False

    def gave_up(self, batch: RequestBatch) -> None:
        """Take note that a request did not go out after all."""
        if self._credit is not None:
            self._credit.gave_up(batch)

    def answered(self, batch: RequestBatch, response: SendResponse) -> None:
        """Take note of an answer.

        :raises TooManyErrorsError: the service refuses or calls faulty too many of the last messages.
        """
        if self._credit is not None:
            self._credit.landed(batch, response)
        if self._max_error_rate is not None:
            submitted = len(batch.messages)
            self._judge(submitted, submitted - min(submitted, response.messages), self._max_error_rate)

    def unanswered(self, batch: RequestBatch, error: BaseException) -> bool:
        """Take note of a request without an answer, and say whether it only waits for credit."""
        if self._credit is None:
            return False
        self._credit.landed(batch, None)
        if isinstance(error, ServiceError) and error.code == INSUFFICIENT_CREDITS:
            self.halt = StopReason(credit=self._credit.needed(batch), too_little=self._credit.balance)
            return True
        return False

    def all_read(self) -> None:
        """Take note that every message was gone through: what was too late for its own hours waits for these."""
        if self.halt is None and self._next_opening is not None:
            self.halt = StopReason(until=self._next_opening)

    def _judge(self, submitted: int, bad: int, limit: float) -> None:
        self._judged.append((submitted, bad))
        while sum(count for count, _ in self._judged) - self._judged[0][0] >= WINDOW_MESSAGES:
            self._judged.popleft()
        seen = sum(count for count, _ in self._judged)
        errors = sum(count for _, count in self._judged)
        if seen >= FIRST_JUDGED and errors > limit * seen:
            raise TooManyErrorsError(
                f"The service refused {errors} of the last {seen} messages, which is more than "
                f"max_error_rate={limit:g}, so sending stopped: look at error_report and at the report"
            )
