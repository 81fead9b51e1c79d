"""What slows a send down or ends it early although nobody stopped it: hours, credit, refusals, no responses.

Hours are looked at before a send as well as before each of its claims, and credit before a send unless
``on_low_balance="send"`` (``execution/waits.py``); in mid-send the service refuses what it does not cover. Whoever
waits for credit compares the balance again: trigger and sensor. :mod:`airflow_provider_sms.service.errors` says what a
status means, and :mod:`~airflow_provider_sms.sending.outcomes`, which tells these conditions of it, what follows. The
error rate is known only while the service responds. A pause takes effect in the claim itself:
``CampaignLedger.commit``.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import OutageError, ServiceError, TooManyErrorsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.campaigns import Pause
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.send_window.window import SendWindow
    from airflow_provider_sms.sending.request_batch import RequestBatch
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)

_INSUFFICIENT_CREDITS = "InsufficientCredits"
"""The service's code, with status 403, for a request that the credit does not cover."""

WINDOW_MESSAGES = 1000
"""How many of the latest messages the error rate is measured over: old errors say little about the rest."""
FIRST_JUDGED = 100
"""Messages before which no error rate ends a send: a share of few says little."""
CALM_RESPONSES = 20
"""Responses in a row after which a send that reconciles posts several requests at once: where several are lost at once,
the sum of what they cost often does not tell which of them were taken."""
MAX_LOST_ALONE = 2
"""Lost responses to requests that went alone after which a send ends: one may be chance."""


def closed_for_all(window: SendWindow | None, now: datetime) -> datetime | None:
    """Return when a send as a whole may go on; None means now.

    A window by the recipients' own clocks closes at a different time for each of them, so it keeps back single messages
    and never a whole send.
    """
    return None if window is None or window.recipient_time_zone else window.closed_until(now)


def is_out_of_credit(error: BaseException) -> bool:
    """Return whether the service refused a request because the credit does not cover it.

    With any status other than 403, the code has no meaning of its own: the status alone decides, as without a code.
    """
    return (
        isinstance(error, ServiceError) and error.status == HTTPStatus.FORBIDDEN and error.code == _INSUFFICIENT_CREDITS
    )


@dataclass(frozen=True, slots=True)
class StopReason:
    """What a send that ended early with nothing wrong waits for: its hours, or credit.

    :param until: when the hours begin again; None means that it waits for credit.
    :param credit: the balance that it needs to go on; None means that it waits for its hours. Before it does, its plan
        is made anew, and the balance has to cover all of that.
    """

    until: datetime | None = None
    credit: Decimal | None = None


class Caution:
    """Keeps an outage from costing more than a handful of requests.

    After a lost response, no request is claimed beside those in flight. Once they have ended, requests go one at a time
    until one is answered; :data:`MAX_LOST_ALONE` lost responses to these end the send. So an outage makes at most
    ``concurrency`` + :data:`MAX_LOST_ALONE` requests unknown, however long it is. Where no response has come since the
    last one was lost, each request goes only after a wait, and after the service has answered a free question.

    :param on: whether to begin with one request at a time.
    :param calm: responses in a row to requests that went alone after which all may go again, at least 1.
    """

    def __init__(self, *, on: bool = False, calm: int = 1) -> None:
        self._calm = calm
        self._answered_alone = 0
        self.on = on
        """Whether one request may go at a time."""
        self.asks = False
        """Whether the service is asked a free question before it."""
        self.lost_alone = 0
        """Requests that went alone and whose response was lost, since the last response."""
        self.until = 0.0
        """When the next request may go alone, seconds of the sender's monotonic clock."""

    def delay(self, now: float) -> float:
        """Return the seconds until a request may go; 0 where nothing keeps it back."""
        return max(0.0, self.until - now) if self.asks else 0.0

    def answered(self, *, alone: bool) -> None:
        """Record a response. Only a request that went alone counts as calm: others were posted before the last loss."""
        self.asks = False
        if alone:
            self.lost_alone = 0
            self._answered_alone += 1
            self.on = self._answered_alone < self._calm

    def lost(self, *, alone: bool) -> None:
        """Record a lost response."""
        self.on = self.asks = True
        self._answered_alone = 0
        self.lost_alone += alone

    @property
    def outage(self) -> OutageError | None:
        """The error that ends the send, where one response too many was lost."""
        if self.lost_alone < MAX_LOST_ALONE:
            return None
        return OutageError(
            "several responses of the service in a row were lost, so no more messages are posted. "
            "The next attempt sends the rest"
        )


class StopConditions:
    """Asked before every claim and notified of the end of every POST, by the sender's thread.

    :param window: the hours in which to send; None means any.
    :param prices: of a send that waits for credit where the service refuses a request for want of it; None fails it.
    :param balance: credits, as they were read before the send; None where that does not matter.
    :param max_error_rate: share of messages, 0 to 1, that the service may refuse or call faulty among the last
        :data:`WINDOW_MESSAGES`; None means no limit.
    """

    def __init__(
        self,
        window: SendWindow | None = None,
        prices: Prices | None = None,
        balance: Decimal | None = None,
        max_error_rate: float | None = None,
        caution: Caution | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stop_reason: StopReason | None = None
        self.paused: Pause | None = None
        self.caution = Caution() if caution is None else caution
        self._window = window
        self._prices = prices
        self.balance = balance
        """Credits, as the last response stated them."""
        self._max_error_rate = max_error_rate
        self._clock = clock
        self._next_opening: datetime | None = None
        self._judged: deque[tuple[int, int]] = deque()

    def note_pause(self, pause: Pause | None) -> bool:
        """Record whether a person has paused the campaign, and return that."""
        if pause is not None and self.paused is None:
            log.warning("%s paused the campaign: nothing more is claimed until a person resumes it", pause.paused_by)
        elif pause is None and self.paused is not None:
            log.info("The campaign was resumed")
        self.paused = pause
        return pause is not None

    def too_late(self, messages: Outgoing) -> list[int]:
        """Return the places of messages that must not go now, because it is outside their hours."""
        late = self._openings(messages)
        if late:
            self._next_opening = min([*late.values(), *([self._next_opening] if self._next_opening else [])])
            if self._window is not None and not self._window.recipient_time_zone:
                self.stop_reason = StopReason(until=self._next_opening)
        return list(late)

    def have_ended(self, messages: Outgoing) -> bool:
        """Return whether the hours of any of the messages have ended; any thread may ask."""
        return bool(self._openings(messages))

    def _openings(self, messages: Outgoing) -> dict[int, datetime]:
        """Return when messages that must not go now may go, by their places."""
        if self._window is None:
            return {}
        now = datetime.fromtimestamp(self._clock(), timezone.utc)
        for_all = closed_for_all(self._window, now)
        if not (for_all or self._window.recipient_time_zone):
            return {}
        openings = (for_all or self._window.closed_until(now, each) for each in messages.destinations)
        return {place: opening for place, opening in enumerate(openings) if opening is not None}

    def answered(self, batch: RequestBatch, response: SendResponse) -> None:
        """Record a response.

        :raises TooManyErrorsError: the service refuses or calls faulty too many of the last messages.
        """
        self.balance = response.remaining_balance
        if self._max_error_rate is not None:
            submitted = len(batch.messages)
            self._judge(submitted, submitted - min(submitted, response.messages), self._max_error_rate)

    def not_processed(self, batch: RequestBatch, error: BaseException) -> bool:
        """Record a request that was not processed, and return whether it only waits for credit."""
        if self._prices is None or not is_out_of_credit(error):
            return False
        cost = self._prices.total(batch.messages.destinations, batch.messages.parts)
        # Whatever the estimate says: the service has just said that this balance is too low.
        self.stop_reason = StopReason(credit=max(cost, (self.balance or Decimal(0)) + 1))
        return True

    def all_read(self) -> None:
        """Make the send wait for the hours of messages that were too late, once all others have gone out."""
        if self.stop_reason is None and self._next_opening is not None:
            self.stop_reason = StopReason(until=self._next_opening)

    def _judge(self, submitted: int, bad: int, limit: float) -> None:
        self._judged.append((submitted, bad))
        while sum(count for count, _ in self._judged) - self._judged[0][0] >= WINDOW_MESSAGES:
            self._judged.popleft()
        seen = sum(count for count, _ in self._judged)
        errors = sum(count for _, count in self._judged)
        if seen >= FIRST_JUDGED and errors > limit * seen:
            raise TooManyErrorsError(
                f"The service refused {errors} of the last {seen} messages, more than max_error_rate={limit:g} "
                "allows, so sending stopped. See error_report in the summary, and the row report"
            )
