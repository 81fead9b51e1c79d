from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.sending import answer, people

from airflow_provider_sms.exceptions import (
    NotSentError,
    RefusedError,
    ThrottledError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.backoff import Backoff
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.response_handler import ResponseHandler, outcome_of, refuse_contradiction
from airflow_provider_sms.sending.stop_conditions import StopConditions
from airflow_provider_sms.service.responses import parse_send_response

REFUSED = NotSentError("connection refused")


@pytest.fixture
def handle():
    """Handle the end of a POST of ten messages as the sender does, and return its state and what follows."""

    def handle(result, *, claiming=lambda: True, attempt=1, turned_away=0):
        conditions, clock = StopConditions(), lambda: 100.0
        handler = ResponseHandler(SendCounts(), conditions, Backoff(), claiming=claiming, monotonic=clock)
        request = InFlightRequest(7, RequestBatch(people(10), {}, attempt=attempt, turned_away=turned_away), 0.0, 0.0)
        result = refuse_contradiction(result)
        outcome = outcome_of(request, result)
        return outcome.state, handler.handle(request, result, outcome)

    return handle


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_stop_at_any_moment_loses_no_request_that_was_turned_away(handle, looks):
    """However often it was seen that sending goes on, the request waits, and so is in the counts of the end."""
    goes_on = iter([True] * looks + [False] * 3)
    state, step = handle(NotSentError("connection refused"), claiming=lambda: next(goes_on))
    assert (state, step.retry_at is not None, step.error) == (NOT_SENT, True, None)


@pytest.mark.parametrize(
    ("result", "state", "again", "ends"),
    [
        (answer(1, 10), ACCEPTED, False, False),
        (answer(1, 4), ACCEPTED, False, False),
        (answer(1, 0), NOT_SENT, False, False),
        (NotSentError("connection refused"), NOT_SENT, True, False),
        (ThrottledError("429", status=429, retry_after=5.0), NOT_SENT, True, False),
        (RefusedError("no", status=400), NOT_SENT, True, True),
        (UnknownOutcomeError("lost"), UNKNOWN, False, False),
        (ZeroDivisionError(), UNKNOWN, False, True),
    ],
)
def test_each_end_of_a_post_has_one_state_and_one_next_step(handle, result, state, again, ends):
    """The table of the module: what is recorded, whether the request is kept, and whether the send ends."""
    found, step = handle(result)
    assert (found, step.retry_at is not None, step.error is not None) == (state, again, ends)


def test_a_request_that_is_posted_again_waits_as_long_as_the_service_asks(handle):
    """On the sender's own clock, so that a clock that is set stretches no wait."""
    _, step = handle(ThrottledError("429", status=429, retry_after=5.0))
    assert step.retry_at == 105.0


def test_a_request_that_was_turned_away_too_often_ends_the_send_and_is_kept_for_the_counts(handle):
    """It waits, so that the end counts its messages as not sent."""
    error = NotSentError("connection refused")
    _, step = handle(error, attempt=10, turned_away=9)
    assert (step.retry_at, step.error) == (100.0, error)
    assert error.attempts == 10


def test_no_response_costs_the_record_of_its_request():
    """Counters of any length, and fields nested too deeply to be written again: the outcome is what was stated."""
    request = InFlightRequest(7, RequestBatch(people(2), {}), 0.0, 0.0)
    nines = "9" * 4300
    counters = f'{{"A2782000001": {nines}, "A2782999901": {nines}}}'
    body = f'{{"Cost": 0, "RemainingBalance": 9, "EventId": 1, "Messages": 0, "Parts": 0, "ErrorReport": {counters}}}'
    outcome = outcome_of(request, parse_send_response(body.encode()))
    assert (outcome.state, outcome.response is None) == (NOT_SENT, False)
    assert outcome.reason is not None
    assert "99999" not in outcome.reason
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    deep = replace(answer(5, 2), raw={**answer(5, 2).raw, "Extra": nested})
    outcome = outcome_of(request, deep)
    assert (outcome.state, outcome.event_id, outcome.response) == (ACCEPTED, 5, None)
    assert json.loads(outcome_of(request, answer(6, 2)).response or "")["EventId"] == 6
