"""What follows from the end of a post: its outcome, its counts, and whether its messages go again."""

from __future__ import annotations

import json
import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeGuard

from airflow_provider_sms.exceptions import (
    ServiceError,
    SmsError,
    ThrottledError,
    TooManyErrorsError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.sending.counts import reported
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.model import Chunk, RequestState
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.sending.pending import PendingMessages
    from airflow_provider_sms.sending.request_batch import InFlightRequest
    from airflow_provider_sms.sending.scheduler import RequestScheduler
    from airflow_provider_sms.sending.sender import SendingOptions
    from airflow_provider_sms.sending.stop_conditions import Brakes


log = logging.getLogger(__name__)

MAX_UNAVAILABLE = 3
"""POSTs of one request that the service may answer by its own 503: the fewer, the less a 503 that is not true costs."""


class ResultHandler:
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
        tally: SendCounts,
        brakes: Brakes,
        departures: RequestScheduler,
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

    def land(
        self, flight: InFlightRequest, result: SendResponse | BaseException, backlog: PendingMessages
    ) -> Exception | None:
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

    def _answered(self, flight: InFlightRequest, response: SendResponse) -> TooManyErrorsError | None:
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

    def _not_processed(self, flight: InFlightRequest, error: SmsError) -> SmsError | None:
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

    def _unknown(self, flight: InFlightRequest, error: BaseException, backlog: PendingMessages) -> Exception | None:
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

    def _slow_down(self, flight: InFlightRequest) -> SmsError | None:
        """Let nothing go for a while, and then one request at a time; give up where their answers are lost, too."""
        caution = self._brakes.caution
        outage = caution.lost(alone=flight.alone)
        caution.until = self._monotonic() + (self._options.backoff.wait(caution.lost_alone + 1) or 0.0)
        return outage if self._claiming() else None


HTTP_OK = 200


def took_none(response: SendResponse) -> bool:
    """Return whether the service took none of the messages, and charged nothing for them."""
    return not (response.messages or response.parts or response.cost)


def answered(request_id: int, response: SendResponse, chunk: Chunk) -> Outcome:
    """Return the outcome of an answer of the contract: accepted, wholly or in part; or not sent, where none were taken.

    :param chunk: what was posted.
    """
    none_taken = took_none(response)
    return Outcome(
        request_id=request_id,
        state=NOT_SENT if none_taken else ACCEPTED,
        http_status=HTTP_OK,
        event_id=response.event_id,
        messages=response.messages,
        parts=response.parts,
        cost=str(response.cost),
        # Not orjson, which refuses half an emoji and integers beyond 64 bits: a record must not fail.
        response=json.dumps(response.raw),
        reason=f"the service took none of the messages: {reported(response.error_report)}" if none_taken else None,
        chunk=chunk,
    )


def surely_not_sent(error: BaseException) -> TypeGuard[SmsError]:
    """Say whether a post that raised this was certainly not processed; what is not known to be ours may have been."""
    return isinstance(error, SmsError) and not error.may_have_been_sent


def failed(request_id: int, state: RequestState, error: BaseException | None) -> Outcome:
    """Give the outcome of a request that ended without an answer of the contract.

    :param state: ``unknown`` or ``not_sent``.
    :param error: why; None where sending was stopped before it was posted.
    """
    return Outcome(
        request_id=request_id,
        state=state,
        http_status=error.status if isinstance(error, ServiceError) else None,
        # The words of an error that is not ours may quote anything: its kind has to do.
        reason=None if error is None else str(error) if isinstance(error, SmsError) else type(error).__name__,
    )
