from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.sending.brakes import Brakes
from airflow_provider_sms.sending.claims import NOT_SENT
from airflow_provider_sms.sending.departures import Departures
from airflow_provider_sms.sending.flights import Batch, Flight
from airflow_provider_sms.sending.landings import Landings
from airflow_provider_sms.sending.options import SendingOptions
from airflow_provider_sms.sending.tally import Tally


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_stop_at_any_moment_loses_no_request_that_was_turned_away(looks):
    """However often it was seen that sending goes on, the request waits, and so is in the counts of the end."""
    options, brakes = SendingOptions(), Brakes()
    departures = Departures(options, brakes)
    goes_on = iter([True] * looks + [False] * 3)
    landings = Landings(options, Tally(), brakes, departures, claiming=lambda: next(goes_on))
    batch = Batch(people(10), {}, attempt=1)
    assert landings.land(Flight(7, batch, 0.0), NotSentError("connection refused"), None) is None
    assert departures.waiting == [batch]
    assert [(outcome.request_id, outcome.state) for outcome in landings.outcomes] == [(7, NOT_SENT)]
