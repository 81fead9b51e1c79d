from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.ledger.model import NOT_SENT
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.results import ResultHandler
from airflow_provider_sms.sending.scheduler import RequestScheduler
from airflow_provider_sms.sending.sender import SendingOptions
from airflow_provider_sms.sending.stop_conditions import Brakes


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_stop_at_any_moment_loses_no_request_that_was_turned_away(looks):
    """However often it was seen that sending goes on, the request waits, and so is in the counts of the end."""
    options, brakes = SendingOptions(), Brakes()
    departures = RequestScheduler(options, brakes)
    goes_on = iter([True] * looks + [False] * 3)
    landings = ResultHandler(options, SendCounts(), brakes, departures, claiming=lambda: next(goes_on))
    batch = RequestBatch(people(10), {}, attempt=1)
    assert landings.land(InFlightRequest(7, batch, 0.0), NotSentError("connection refused"), None) is None
    assert departures.waiting == [batch]
    assert [(outcome.request_id, outcome.state) for outcome in landings.outcomes] == [(7, NOT_SENT)]
