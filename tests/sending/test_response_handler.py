from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest
from support.sending import answer, people

from airflow_provider_sms.exceptions import (
    HeldBackError,
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
from airflow_provider_sms.sending.stop_conditions import SILENT_SECONDS, Silence, StopConditions
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
    assert (state, step.is_deferred or step.retry_at is not None, step.error) == (NOT_SENT, True, None)


@pytest.mark.parametrize(
    ("result", "state", "again", "ends"),
    [
        (answer(1, 10), ACCEPTED, False, False),
        (answer(1, 4), ACCEPTED, False, False),
        (answer(1, 0), NOT_SENT, False, False),
        (NotSentError("connection refused"), NOT_SENT, True, False),
        (ThrottledError("429", status=429, retry_after=5.0), NOT_SENT, True, False),
        (RefusedError("no", status=400), NOT_SENT, False, True),
        (UnknownOutcomeError("lost"), UNKNOWN, False, False),
        (ZeroDivisionError(), UNKNOWN, False, True),
    ],
)
def test_each_end_of_a_post_has_one_state_and_one_next_step(handle, result, state, again, ends):
    """The table of the module: what is recorded, whether the request is posted again, and whether the send ends."""
    found, step = handle(result)
    assert (found, step.retry_at is not None, step.error is not None) == (state, again, ends)


def test_a_request_that_is_posted_again_waits_as_long_as_the_service_asks(handle):
    """On the sender's own clock, so that a clock that is set stretches no wait."""
    _, step = handle(ThrottledError("429", status=429, retry_after=5.0))
    assert step.retry_at == 105.0


def test_a_request_that_was_turned_away_too_often_ends_the_send_and_is_kept_for_the_counts(handle):
    """It is deferred, so that the end counts its messages as not sent."""
    error = NotSentError("connection refused")
    _, step = handle(error, attempt=10, turned_away=9)
    assert (step.is_deferred, step.retry_at, step.error) == (True, None, error)
    assert error.attempts == 10


class TestSilence:
    """A send that Airflow tries again ends once the service has responded to nothing for a while."""

    @pytest.fixture
    def after(self):
        """Handle results, each with the seconds at which its POST ended, and return what follows the last one."""

        def after(*ended, ends=True, reached=True):
            conditions = StopConditions(silence=Silence(ends=ends, reached=reached))
            times = [0.0]
            # Waits are as long as they may be.
            backoff = Backoff(random=Mock(uniform=lambda _, longest: longest))
            handler = ResponseHandler(
                SendCounts(), conditions, backoff, claiming=lambda: True, monotonic=lambda: times[-1]
            )
            step = None
            for number, (seconds, result) in enumerate(ended):
                times.append(seconds)
                request = InFlightRequest(number, RequestBatch(people(10), {}, attempt=6), 0.0, 0.0)
                step = handler.handle(request, result, outcome_of(request, result))
            return step

        return after

    def test_the_last_post_comes_when_the_time_is_up_and_ends_the_send(self, after, caplog):
        """No wait goes beyond that time, nor does the log say so."""
        up = 5.0 + SILENT_SECONDS
        step = after((5.0, REFUSED), (up - 1.0, REFUSED))
        assert (step.error, step.retry_at) == (None, up)
        assert "next try in 1.0 s" in caplog.text
        assert after((5.0, REFUSED), (up, REFUSED)).error is REFUSED

    def test_a_send_without_any_response_ends_at_its_first_failure(self, after):
        """Its balance could not be read either: another worker may have a way to the service."""
        assert after((0.0, REFUSED), reached=False).error is REFUSED

    def test_time_without_a_request_is_no_silence(self, after):
        """It begins with a failure: a send that had nothing to post, or a process that slept, has heard nothing."""
        step = after((0.0, answer(1, 10)), (3600.0, REFUSED))
        assert (step.error, step.retry_at) == (None, 3601.0)

    def test_a_last_attempt_goes_on(self, after):
        """Nobody tries again after it, so it makes all its POSTs."""
        step = after((0.0, REFUSED), (1000.0, REFUSED), ends=False)
        assert (step.error, step.retry_at) == (None, 1032.0)

    @pytest.mark.parametrize(
        ("response", "ends"),
        [
            (answer(1, 10), False),
            (ThrottledError("429", status=429), False),
            (ThrottledError("503", status=503, code="Busy"), False),
            (NotSentError("a free question got 429", status=429), False),
            (NotSentError("a free question got the service's own 503", status=503, code="Busy"), False),
            (NotSentError("a free question got a gateway's 503", status=503), True),
            (UnknownOutcomeError("408", status=408), False),
            (UnknownOutcomeError("no response"), True),
            (UnknownOutcomeError("502", status=502), True),
            (NotSentError("a free question got 502", status=502), True),
            (NotSentError("no route to host"), True),
        ],
    )
    def test_a_response_of_the_service_ends_a_silence(self, after, response, ends):
        """A gateway that does not reach the service responds, too, with 5xx: that is none."""
        assert (after((0.0, REFUSED), (10.0, response), (25.0, REFUSED)).error is REFUSED) == ends

    @pytest.mark.parametrize("reached", [True, False])
    def test_a_request_that_this_process_held_back_tells_nothing_of_the_service(self, after, reached):
        """Too little time was left of its claim, perhaps: it begins no silence, and ends none."""
        held_back = HeldBackError("too little time was left of its claim")
        assert after((0.0, held_back), (60.0, held_back), reached=reached).error is None
        assert after((0.0, REFUSED), (10.0, held_back), (25.0, REFUSED)).error is REFUSED
        assert after((0.0, REFUSED), (25.0, held_back)).error is None

    def test_after_its_first_response_a_send_is_more_patient(self, after):
        """Its worker has a way to the service."""
        assert after((0.0, answer(1, 10)), (5.0, REFUSED), reached=False).error is None


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
