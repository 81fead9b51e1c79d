"""What follows from the end of a post: its outcome, its counts, and whether its messages go again."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import (
    ServiceError,
    SmsError,
    ThrottledError,
    TooManyErrorsError,
    UnknownOutcomeError,
)
from airflow_provider_sms.sending.claims import NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.outcomes import answered, failed, surely_not_sent, took_none
from airflow_provider_sms.sending.tally import reported
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.sending.backlog import Backlog
    from airflow_provider_sms.sending.brakes import Brakes
    from airflow_provider_sms.sending.claims import Outcome
    from airflow_provider_sms.sending.departures import Departures
    from airflow_provider_sms.sending.flights import Flight
    from airflow_provider_sms.sending.options import SendingOptions
    from airflow_provider_sms.sending.tally import Tally

log = logging.getLogger(__name__)

MAX_UNAVAILABLE = 3
"""POSTs of one request that the service may answer by its own 503: the fewer, the less a 503 that is not true costs."""


class Landings:
    """Takes in the ends of posts, one after the other. Not thread-safe: the thread that decides owns it.

    :param options: whether and when messages are posted again.
    :param tally: where to count.
    :param brakes: told of every end.
    :param departures: where what goes again waits.
    :param claiming: says whether anything more is to be claimed.
    :param monotonic: seconds from any start.
    """

    def __init__(
        self,
        options: SendingOptions,
        tally: Tally,
        brakes: Brakes,
        departures: Departures,
        *,
        claiming: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.outcomes: list[Outcome] = []
        """Those that are not recorded yet."""
        self._options = options
        self._tally = tally
        self._brakes = brakes
        self._departures = departures
        self._claiming = claiming
        self._monotonic = monotonic

    def land(self, flight: Flight, result: SendResponse | BaseException, backlog: Backlog) -> Exception | None:
        """Take in the end of a post.

        :param result: the answer, or what the post raised.
        :param backlog: takes messages that are to be posted again though their outcome is unknown.
        :returns: why nothing more may be claimed; None: this end is no reason.
        """
        if isinstance(result, SendResponse):
            if result.messages or took_none(result):
                return self._answered(flight, result)
            result = UnknownOutcomeError("the answer says that no message was taken, and charges for some")
        if surely_not_sent(result):
            return self._not_processed(flight, result)
        return self._unknown(flight, result, backlog)

    def _answered(self, flight: Flight, response: SendResponse) -> TooManyErrorsError | None:
        submitted = len(flight.batch.messages)
        self.outcomes.append(answered(flight.request_id, response, flight.batch.chunk))
        if response.messages:
            self._tally.add_accepted(flight.request_id, submitted, response)
        else:
            # What was taken over is again with the unknown request that had it before.
            before = [flight.batch.take_over[m.key] for m in flight.batch.messages if m.key in flight.batch.take_over]
            self._tally.add_none_taken(submitted - len(before), response)
            for unknown_id in before:
                self._tally.add_unknown(unknown_id, 1)
        self._brakes.caution.answered(alone=flight.alone)
        if response.messages < submitted:
            log.warning(
                "Request %d: the service took %d of %d messages; its reasons: %s",
                flight.request_id,
                response.messages,
                submitted,
                reported(response.error_report),
            )
        try:
            self._brakes.answered(flight.batch, response)
        except TooManyErrorsError as error:
            return error
        return None

    def _not_processed(self, flight: Flight, error: SmsError) -> SmsError | None:
        """Give the claim back, so that a crash makes nothing unknown, and post again later where that may help."""
        self.outcomes.append(failed(flight.request_id, NOT_SENT, error))
        batch = flight.batch
        unavailable = isinstance(error, ThrottledError) and error.status == HTTPStatus.SERVICE_UNAVAILABLE
        batch.turn_away(self._tally.accepted, unavailable=unavailable)
        now = self._monotonic()
        if self._brakes.unanswered(batch, error):
            log.warning("Request %d was refused, since the credit is out: %s", flight.request_id, error)
            self._departures.hold(batch, now)
            return None
        asked = error.retry_after if isinstance(error, ServiceError) else None
        again = (
            error.transient
            and batch.turned_away < self._options.backoff.attempts_beside_others
            and batch.unavailable < MAX_UNAVAILABLE
        )
        wait = self._options.backoff.wait(batch.attempt, asked) if again else None
        # Looked at once: told to stop between two looks, the batch would not wait, and be in no count.
        claiming = self._claiming()
        if claiming and wait is not None:
            log.warning("Request %d was not processed, again in %.1f s: %s", flight.request_id, wait, error)
            self._departures.again(batch, now + wait)
            return None
        self._departures.hold(batch, now)
        return error if claiming else None

    def _unknown(self, flight: Flight, error: BaseException, backlog: Backlog) -> Exception | None:
        outcome = failed(flight.request_id, UNKNOWN, error)
        self.outcomes.append(outcome)
        self._brakes.unanswered(flight.batch, error)
        log.warning(
            "Request %d of %d messages: its outcome is unknown: %s",
            flight.request_id,
            len(flight.batch.messages),
            outcome.reason,
        )
        self._tally.requests += 1
        for outgoing in flight.batch.messages:
            # Once more in one try is enough: the next try comes after Airflow's retry delay.
            if self._options.resend_unknown and outgoing.key not in flight.batch.take_over:
                backlog.take_over(outgoing, flight.request_id)
            else:
                self._tally.add_unknown(flight.request_id, 1)
        if isinstance(error, SmsError):
            return self._slow_down(flight)
        # Something that nobody foresaw: it may happen to every request, so no other one is tried.
        return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)

    def _slow_down(self, flight: Flight) -> SmsError | None:
        """Let nothing go for a while, and then one request at a time; give up where their answers are lost, too."""
        caution = self._brakes.caution
        outage = caution.lost(alone=flight.alone)
        caution.until = self._monotonic() + (self._options.backoff.wait(caution.lost_alone + 1) or 0.0)
        return outage if self._claiming() else None
