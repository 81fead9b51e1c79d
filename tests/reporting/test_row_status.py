from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.request_queries import RequestRow
from airflow_provider_sms.reporting.row_status import ALREADY_SENT, LONGEST_REASON, RowStatus, short, status_of


def test_a_claim_that_is_given_back_meanwhile_is_not_sent():
    """Between the look-up of a message and that of its request, another process may have said that it was not sent."""
    record = RequestRow(7, "c", "bulk", NOT_SENT, 1, None, 0, 1.5, 2.5, None, "refused", "d", "t", "r", -1, 1)
    assert status_of(record) == RowStatus(NOT_SENT, "refused", 7, None, None)


@pytest.mark.parametrize(("mine", "status"), [(True, ACCEPTED), (False, ALREADY_SENT)])
def test_a_message_of_which_the_balance_told_says_so(mine, status):
    """There is no response to look at, so the row has the sum that stands for it."""
    words = "The balance fell by 100, exactly what request 7 costs: it was taken."
    record = RequestRow(7, "c", "bulk", ACCEPTED, 1, None, 1, 1.5, 2.5, None, words, "d", "t", "r", -1, 1, mine)
    told = record._replace(evidence=KeptEvidence("charged", words, 3.0))
    assert status_of(told) == RowStatus(status, words, 7, None, 2_500_000)


def test_a_message_that_a_person_called_sent_has_no_reason():
    """Whatever the balance told: the reason in the ledger is still why the request was unknown."""
    record = RequestRow(7, "c", "bulk", ACCEPTED, 1, None, 1, 1.5, 2.5, None, "timeout", "d", "t", "r", -1, 1)
    for evidence in (None, KeptEvidence("undecided", "No balance is known before it.", 3.0)):
        assert status_of(record._replace(evidence=evidence)).reason is None


def test_a_reason_is_short_and_names_nobody():
    """The service's words can quote a number, and stand in each row."""
    assert short("no route to 27820000001") == "no route to 2782*****01"
    assert (len(short("x" * 1000)), short(""), short(None)) == (LONGEST_REASON, None, None)


def test_a_recorded_reason_keeps_its_figures():
    """Its numbers were masked before it was recorded: a status beside a code is no number of a person."""
    reason = "bulkmessages: the service refused the request (HTTP 400, 10042): no route to 2782*****01"
    record = RequestRow(7, "c", "bulk", UNKNOWN, 1, None, 0, 1.5, 2.5, None, reason, "d", "t", "r", -1, 1)
    assert status_of(record).reason == reason
