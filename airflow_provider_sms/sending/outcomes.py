"""The end of a POST: the outcome that the ledger records, and what happens next.

| Event | Certainty | Ledger state | What happens next |
|---|---|---|---|
| 200, every message taken | sent | `accepted` | the send goes on |
| 200, fewer taken than posted | sent in part | `accepted` | none is posted again |
| 200, none taken and none charged for | not sent | `not_sent` | the send goes on; the task fails in the end |
| not posted: no connection, no readable balance, or too late | not sent | `not_sent` | posted again after a wait |
| 429; 503 with an `errorCode` | not processed | `not_sent` | posted again after `Retry-After`, else after a wait |
| no connection, 429 or such a 503, too often | not processed | `not_sent` | the send ends |
| 403 `InsufficientCredits` | not processed | `not_sent` | the send ends; `on_low_balance="wait"` waits |
| 401; any other 3xx or 4xx except 303, 408, 499 | refused | `not_sent` | the send ends |
| no response; a broken or contradictory one | may have been sent | `unknown` | slower; resent by a policy or person |
| 303, 408, 499; other 1xx, 2xx and 5xx | may have been sent | `unknown` | slower; resent by a policy or person |
| an unforeseen error | may have been sent | `unknown` | the send ends |
| the send ends before the POST | not sent | `not_sent` | the next attempt sends the messages |
| no outcome before the deadline | may have been sent | `unknown` | resent by a policy or person |

:mod:`airflow_provider_sms.service.errors` decides what a status means. *Slower* is
:class:`~airflow_provider_sms.sending.stop_conditions.Caution`: one request at a time until one is answered; a second
response that is lost alone ends the send. With ``on_unknown="reconcile"`` it ends the pass, and
:mod:`~airflow_provider_sms.sending.settle` may close the request by the balance. A wait holds back all requests. *Too
often* is ten POSTs of a request, or thirty if the service takes others meanwhile
(:class:`Backoff`); the third 503 of a request ends the send. A response is
*contradictory* if another request had it, or if it takes nothing and charges for it. The ledger's ``lapse`` writes the
last row, for a process that died.
"""

from __future__ import annotations

import json
import logging
import random
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeGuard

from airflow_provider_sms.exceptions import (
    ServiceError,
    SmsError,
    ThrottledError,
    TooManyErrorsError,
    UnknownOutcomeError,
)
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.service.redaction import redacted_response, reported
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.model import RequestState
    from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
    from airflow_provider_sms.sending.stop_conditions import StopConditions


log = logging.getLogger(__name__)

BESIDE_OTHERS = 3
"""How many times as many POSTs a request has while the service takes others: these wait when it does."""
MAX_UNAVAILABLE = 3
"""POSTs of one request that the service may answer with its own 503: few, since each false 503 texts people twice."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter, bounded in number and length.

    Before attempt ``n + 1`` the wait is uniform between 0 and ``min(longest, base * 2 ** (n - 1))`` seconds. Where the
    service asks for a wait with ``Retry-After``, that wait takes its place, capped.

    :param attempts: the most POSTs of one request, at least 1.
    """

    attempts: int = 10
    base: float = 1.0
    longest: float = 60.0
    longest_retry_after: float = 300.0
    random: random.Random = field(default_factory=random.Random)

    def wait(self, attempt: int, retry_after: float | None = None) -> float | None:
        """Return the seconds to wait after that many POSTs; None means that no further one follows."""
        if attempt >= self.attempts:
            return None
        if retry_after is not None:
            return min(retry_after, self.longest_retry_after)
        return self.random.uniform(0.0, min(self.longest, self.base * 2.0 ** (attempt - 1)))


@dataclass(frozen=True, slots=True)
class NextStep:
    """What the sender does after the end of a POST, beside recording its outcome.

    :param retry_at: when the request is posted again, in seconds of the sender's monotonic clock, with no other request
        before it; None means that it is not.
    :param error: why nothing more may be claimed; None means that this end is no reason for that.
    """

    retry_at: float | None = None
    error: Exception | None = None


@dataclass(slots=True)
class Outcomes:
    """Decides what follows from the end of each POST. Not thread-safe: the sender's thread owns it."""

    stop_conditions: StopConditions
    backoff: Backoff
    reconciles: bool = False
    monotonic: Callable[[], float] = time.monotonic
    taken: int = 0
    """Messages that the service has taken."""

    def next_step(self, request: InFlightRequest, result: SendResponse | BaseException, *, claiming: bool) -> NextStep:
        """Return what the sender does next.

        :param result: the response, or what the POST raised.
        """
        if isinstance(result, SendResponse):
            return self._answered(request, result)
        if surely_not_sent(result):
            return self._not_processed(request, result, claiming=claiming)
        return self._unknown(request, result, claiming=claiming)

    def _answered(self, request: InFlightRequest, response: SendResponse) -> NextStep:
        submitted = len(request.batch.messages)
        self.taken += min(submitted, response.messages)
        self.stop_conditions.caution.answered(alone=request.alone)
        if response.messages < submitted:
            log.warning(
                "Request %d: the service took %d of %d %s. Its error report: %s",
                request.request_id,
                response.messages,
                submitted,
                by_count(submitted, "message"),
                reported(response.error_report, request.batch.messages.contents),
            )
        try:
            self.stop_conditions.answered(request.batch, response)
        except TooManyErrorsError as error:
            return NextStep(error=error)
        return NextStep()

    def _not_processed(self, request: InFlightRequest, error: SmsError, *, claiming: bool) -> NextStep:
        batch = request.batch
        unavailable = isinstance(error, ThrottledError) and error.status == HTTPStatus.SERVICE_UNAVAILABLE
        batch.turned_away += 1
        batch.unavailable += unavailable
        if self.taken > batch.taken_before:  # it took others meanwhile: it throttles, and is up
            batch.attempt, batch.taken_before = 1, self.taken
        now = self.monotonic()
        if self.stop_conditions.not_processed(batch, error):
            log.warning("Request %d was refused because the credit has run out: %s", request.request_id, error)
            return NextStep()
        asked = error.retry_after if isinstance(error, ServiceError) else None
        again = (
            error.transient
            and batch.turned_away < BESIDE_OTHERS * self.backoff.attempts
            and batch.unavailable < MAX_UNAVAILABLE
        )
        wait = self.backoff.wait(batch.attempt, asked) if again else None
        if claiming and wait is not None:
            tries = (batch.unavailable, MAX_UNAVAILABLE) if unavailable else (batch.attempt, self.backoff.attempts)
            words = "Request %d was not processed, next try in %.1f s (try %d of %d): %s"
            log.warning(words, request.request_id, wait, tries[0] + 1, tries[1], error)
            return NextStep(retry_at=now + wait)
        if isinstance(error, ServiceError):
            error.attempts = batch.turned_away
        return NextStep(error=error if claiming else None)

    def _unknown(self, request: InFlightRequest, error: BaseException, *, claiming: bool) -> NextStep:
        submitted, reason = len(request.batch.messages), _reason(error)
        log.warning(
            "The outcome of request %d, of %d %s, is unknown: %s",
            request.request_id,
            submitted,
            by_count(submitted, "message"),
            reason,
        )
        if not isinstance(error, SmsError):
            # An unforeseen error may happen to every request, so no other one is tried.
            return NextStep(error=error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
        caution = self.stop_conditions.caution
        caution.lost(alone=request.alone)
        caution.until = self.monotonic() + (self.backoff.wait(caution.lost_alone + 1) or 0.0)
        # Where the balance tells what became of requests, it also tells whether the service takes any.
        return NextStep(error=caution.outage if claiming and not self.reconciles else None)


def outcome_of(request: InFlightRequest, result: SendResponse | BaseException) -> Outcome:
    """Return the outcome of a POST, as the ledger records it.

    A request that was not sent is given back at once, even where it is posted again later, so that a crash in between
    makes nothing unknown.
    """
    if isinstance(result, SendResponse):
        return answered(request.request_id, result, request.batch)
    state = NOT_SENT if surely_not_sent(result) else UNKNOWN
    return failed(request.request_id, state, result)


def refuse_contradiction(result: SendResponse | BaseException) -> SendResponse | BaseException:
    """Return the result of a POST, or an error in place of a response that took no message and charges for some."""
    if isinstance(result, SendResponse) and not (result.messages or took_none(result)):
        return UnknownOutcomeError("the response says that no message was taken, and charges for some")
    return result


def took_none(response: SendResponse) -> bool:
    """Return whether the service took none of the messages, and charged nothing for them."""
    return not (response.messages or response.parts or response.cost)


def answered(request_id: int, response: SendResponse, batch: RequestBatch) -> Outcome:
    """Return the outcome of a response that meets the contract: accepted, all or in part, or not sent."""
    none_taken, texts = took_none(response), batch.messages.contents
    report = reported(response.error_report, texts) if none_taken else None
    return Outcome(
        request_id=request_id,
        state=NOT_SENT if none_taken else ACCEPTED,
        http_status=HTTPStatus.OK.value,
        event_id=response.event_id,
        messages=response.messages,
        parts=response.parts,
        cost=str(response.cost),
        response=json.dumps(redacted_response(response, texts)),
        reason=f"the service took none of the messages: {report}" if none_taken else None,
    )


def surely_not_sent(error: BaseException) -> TypeGuard[SmsError]:
    """Return whether the request of a POST that raised this error was certainly not processed.

    After an error that is not this package's own, it may have been.
    """
    return isinstance(error, SmsError) and not error.may_have_been_sent


def failed(request_id: int, state: RequestState, error: BaseException | None) -> Outcome:
    """Return the outcome of a request that ended without a response that meets the contract."""
    return Outcome(
        request_id=request_id,
        state=state,
        http_status=error.status if isinstance(error, ServiceError) else None,
        reason=None if error is None else _reason(error),
    )


def _reason(error: BaseException) -> str:
    # The words of an error that is not this package's own may quote a number or a text: its type has to do.
    return str(error) if isinstance(error, SmsError) else type(error).__name__
