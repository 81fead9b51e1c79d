from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from support.sending import answer

from airflow_provider_sms.sending.counts import SendCounts, reported
from airflow_provider_sms.service.responses import ErrorReport, NetworkCost


def test_unknown_messages_are_counted_with_the_requests_that_hold_them():
    """Requests whose own process may still record an outcome are apart: nobody is asked about them yet."""
    tally = SendCounts()
    tally.add_unknown(7, 3)
    tally.add_unknown(7, 1)
    tally.add_unrecorded(8, 1)
    tally.add_unrecorded(8, 1)
    assert (tally.unknown, tally.unknown_requests, tally.unrecorded) == (6, {7}, {8: 2})


def test_names_that_the_service_chose_hold_no_number():
    """Networks and further counters are free text, which the summary, logs, pages and progress show."""
    tally = SendCounts()
    lines = (NetworkCost("to 27821234567", Decimal(1), 1), NetworkCost("to 2782|9999|967", Decimal(2), 3))
    report = ErrorReport(other={"of 27821234567": 2, "of 2782,9999,967": 3, "NoContents": 1})
    response = replace(answer(1, 9), cost_breakdown=lines, error_report=report)
    tally.add_accepted(9, response)
    assert tally.cost_breakdown == {"to 2782*****67": (Decimal(3), 4)}
    expected = {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": 0, "of 2782*****67": 5, "NoContents": 1}
    assert tally.error_report == reported(report) == expected


def test_names_that_the_service_chose_can_be_stored():
    """No database takes half an emoji or NUL, and the summary must not fail after everybody was texted."""
    tally = SendCounts()
    lines = (NetworkCost("Local\ud800", Decimal(1), 1), NetworkCost("Local\0", Decimal(2), 3))
    response = replace(answer(1, 9), cost_breakdown=lines, error_report=ErrorReport(other={"No\ud83d": 2}))
    tally.add_accepted(9, response)
    assert (tally.cost_breakdown, tally.error_report["No?"]) == ({"Local?": (Decimal(3), 4)}, 2)
