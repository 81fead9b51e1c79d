from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from support.sending import answer

from airflow_provider_sms.reporting.summary import Sums
from airflow_provider_sms.service.responses import ErrorReport, NetworkCost


def added(lines, others):
    sums = Sums()
    sums.add(replace(answer(1, 9), cost_breakdown=lines, error_report=ErrorReport(other=others)))
    return sums


def test_names_that_the_service_chose_hold_no_number():
    """Networks and further counters are free text, which the summary, logs, pages and progress show."""
    lines = (NetworkCost("to 27821234567", Decimal(1), 1), NetworkCost("to 2782|9999|967", Decimal(2), 3))
    sums = added(lines, {"of 27821234567": 2, "of 2782,9999,967": 3, "NoContents": 1})
    assert sums.cost_breakdown == {"to 2782*****67": (Decimal(3), 4)}
    assert {name: count for name, count in sums.error_report.items() if count} == {"of 2782*****67": 5, "NoContents": 1}


def test_names_that_the_service_chose_can_be_stored():
    """No database takes half an emoji or NUL, and the summary must not fail after everybody was texted."""
    lines = (NetworkCost("Local\ud800", Decimal(1), 1), NetworkCost("Local\0", Decimal(2), 3))
    sums = added(lines, {"No\ud83d": 2})
    assert (sums.cost_breakdown, sums.error_report["No?"]) == ({"Local?": (Decimal(3), 4)}, 2)
