from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from support.engine import by_request
from support.sending import answer, people

from airflow_provider_sms.exceptions import NotSentError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.outcomes import Backoff, Outcomes, outcome_of, refuse_contradiction
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.stop_conditions import StopConditions
from airflow_provider_sms.service.responses import parse_send_response

REFUSED = NotSentError("connection refused")


def request_of(count=10, **tries):
    return InFlightRequest(7, RequestBatch(next(by_request(people(count))), **tries), 0.0, 0.0, 0.0)


def end(result, *, claiming=True, **tries):
    """End a POST as the sender does, and return its state and what follows."""
    request, result = request_of(**tries), refuse_contradiction(result)
    step = Outcomes(StopConditions(), Backoff(), monotonic=lambda: 100.0).next_step(request, result, claiming=claiming)
    return outcome_of(request, result).state, step


@pytest.mark.parametrize(
    ("result", "state", "again", "ends"),
    [
        (answer(1, 10), ACCEPTED, False, False),
        (answer(1, 4), ACCEPTED, False, False),
        (answer(1, 0), NOT_SENT, False, False),
        (replace(answer(1, 4), messages=0, parts=0), UNKNOWN, False, False),
        (replace(answer(1, 4), messages=0, cost=Decimal(0)), UNKNOWN, False, False),
        (REFUSED, NOT_SENT, True, False),
        (ThrottledError("429", status=429, retry_after=5.0), NOT_SENT, True, False),
        (RefusedError("no", status=400), NOT_SENT, False, True),
        (UnknownOutcomeError("lost"), UNKNOWN, False, False),
        (ZeroDivisionError(), UNKNOWN, False, True),
    ],
)
def test_each_end_of_a_post_has_one_state_and_one_next_step(result, state, again, ends):
    """The table of the module: what is recorded, whether the request is posted again, and whether the send ends."""
    found, step = end(result)
    assert (found, step.retry_at is not None, step.error is not None) == (state, again, ends)


def test_a_send_that_ends_posts_nothing_again_and_names_no_further_error():
    """A request that was turned away is given back; the next attempt sends its messages."""
    state, step = end(REFUSED, claiming=False)
    assert (state, step.retry_at, step.error) == (NOT_SENT, None, None)


def test_a_request_that_is_posted_again_waits_as_long_as_the_service_asks():
    """On the sender's own clock, so that a clock that is set stretches no wait."""
    assert end(ThrottledError("429", status=429, retry_after=5.0))[1].retry_at == 105.0


def test_a_request_that_was_turned_away_too_often_ends_the_send():
    """The error says how often it was tried."""
    _, step = end(REFUSED, attempt=10, turned_away=9)
    assert (step.retry_at, step.error, REFUSED.attempts) == (None, REFUSED, 10)


def test_a_service_that_takes_others_is_given_more_attempts():
    """A service that throttles takes other messages meanwhile; one that is away takes none."""
    outcomes, request = Outcomes(StopConditions(), Backoff(), taken=10), request_of(attempt=5, taken_before=10)
    batch = request.batch
    outcomes.next_step(request, ThrottledError("503", status=503), claiming=True)
    assert (batch.attempt, batch.turned_away, batch.unavailable) == (5, 1, 1)
    outcomes.taken = 11
    outcomes.next_step(request, ThrottledError("429", status=429), claiming=True)
    assert (batch.attempt, batch.taken_before, batch.turned_away, batch.unavailable) == (1, 11, 2, 1)


def test_no_response_costs_the_record_of_its_request():
    """Counters of any length count nothing, and the outcome is what was stated."""
    nines = "9" * 4300
    counters = f'{{"A2782000001": {nines}, "A2782999901": {nines}}}'
    body = f'{{"Cost": 0, "RemainingBalance": 9, "EventId": 1, "Messages": 0, "Parts": 0, "ErrorReport": {counters}}}'
    outcome = outcome_of(request_of(2), parse_send_response(body.encode()))
    assert (outcome.state, outcome.response is None, "99999" in outcome.reason) == (NOT_SENT, False, False)
    assert json.loads(outcome_of(request_of(2), answer(6, 2)).response or "")["EventId"] == "6"


def test_waits_are_bounded_in_length_and_number():
    """Waits grow up to the longest, and end."""
    backoff = Backoff(attempts=8, base=1.0, longest=10.0)
    waits = [backoff.wait(attempt) for attempt in range(1, 9)]
    assert waits[-1] is None
    assert all(0 <= wait <= limit for wait, limit in zip(waits, [1, 2, 4, 8, 10, 10, 10], strict=False))


def test_retry_after_is_granted_within_reason():
    """The wait that the service asks for is kept, but not for an hour."""
    backoff = Backoff(longest_retry_after=300.0)
    assert [backoff.wait(1, asked) for asked in (0.0, 17.0, 3600.0)] == [0.0, 17.0, 300.0]
