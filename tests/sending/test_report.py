from __future__ import annotations

import json
from decimal import Decimal

import pytest
from support.sending import answer

from airflow_provider_sms.sending.report import COUNTS, continued, summarise
from airflow_provider_sms.sending.tally import Tally
from airflow_provider_sms.service.responses import NetworkCost, parse_send_response


def test_the_summary_has_the_documented_shape():
    """Names and types of the summary are a contract with whoever reads the XCom."""
    tally = Tally()
    tally.add_accepted(1, 100, answer(12_345_678_901, 100))
    summary = summarise("c", 105, 5, tally)
    assert json.loads(json.dumps(summary)) == {
        "campaign": "c",
        "rows": 105,
        "accepted": 100,
        "unknown": 0,
        "not_sent": 0,
        "invalid": 5,
        "duplicate": 0,
        "suppressed": 0,
        "already_sent": 0,
        "requests": 1,
        "parts": 100,
        "cost": 150.0,
        "remaining_balance": 1000.0,
        "event_ids": ["12345678901"],
        "cost_breakdown": {},
        "error_report": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": 0},
        "report": None,
    }


def test_rows_are_the_sum_of_the_counts_whenever_sending_ended():
    """What nothing accounts for was not sent."""
    tally = Tally(unknown=10, duplicate=2, already_sent=5)
    tally.add_accepted(1, 20, answer(1, 17, left_out=3))
    summary = summarise("c", 100, 4, tally)
    assert (summary["not_sent"], sum(summary[name] for name in COUNTS)) == (62, 100)


def test_above_the_limit_there_are_no_event_ids():
    """The summary's size does not grow with the send; what it has is in request order, not in that of the answers."""
    tally = Tally(max_event_ids=3)
    for number in range(3):
        tally.add_accepted(9 - number, 1, answer(number, 1))
    assert summarise("c", 3, 0, tally)["event_ids"] == ["2", "1", "0"]
    tally.add_accepted(3, 1, answer(3, 1))
    assert summarise("c", 4, 0, tally)["event_ids"] == []


def test_costs_are_added_exactly():
    """Money is added as decimals: ten times 0.1 is 1."""
    tally = Tally()
    body = (
        b'{"Cost": 0.1, "RemainingBalance": 9.9, "EventId": 1, "Messages": 1, "Parts": 1,'
        b' "CostBreakDown": [{"Network": "Local", "Cost": 0.1, "Quantity": 1}]}'
    )
    response = parse_send_response(body)
    assert response.cost_breakdown == (NetworkCost("Local", Decimal("0.1"), 1),)
    for _ in range(10):
        tally.add_accepted(1, 1, response)
    summary = summarise("c", 10, 0, tally)
    assert (summary["cost"], summary["cost_breakdown"]) == (1.0, {"Local": {"cost": 1.0, "quantity": 10}})


def test_error_reports_are_added_with_counters_nobody_foresaw():
    """Further counters of the service are in the summary, faults as a count only."""
    tally = Tally()
    body = (
        b'{"Cost": 1, "RemainingBalance": 9, "EventId": 1, "Messages": 1, "Parts": 1, "ErrorReport":'
        b' {"NoNetwork": 1, "Duplicates": 0, "OptedOuts": 2, "NoContents": 4,'
        b' "Faults": [{"rawDestination": "27821234567"}]}}'
    )
    for _ in range(2):
        tally.add_accepted(1, 9, parse_send_response(body))
    assert summarise("c", 18, 0, tally)["error_report"] == {
        "NoNetwork": 2,
        "Duplicates": 0,
        "OptedOuts": 4,
        "Faults": 2,
        "NoContents": 8,
    }


def test_the_balance_is_the_last_one_seen():
    """The remaining balance is that of the last answer; without one there is none."""
    tally = Tally()
    assert summarise("c", 0, 0, tally)["remaining_balance"] is None
    tally.add_accepted(1, 1, answer(1, 1))
    assert summarise("c", 1, 0, tally)["remaining_balance"] == 1000.0


def part(**changes):
    """Give the summary of a part of a try, of 300 rows."""
    nothing = dict.fromkeys(("accepted", "unknown", "not_sent", "duplicate", "already_sent", "requests", "parts"), 0)
    return {**summarise("c", 300, 0, Tally()), **nothing, "cost": 0.0, **changes}


FIRST = part(accepted=150, unknown=100, duplicate=50, requests=3, parts=150, cost=150.0, event_ids=["1", "2"])


@pytest.mark.parametrize(
    ("after", "accepted", "unknown", "not_sent"),
    [
        (part(already_sent=300), 250, 0, 0),
        (part(accepted=100, already_sent=200, requests=1), 250, 0, 0),
        (part(unknown=100, already_sent=200, requests=1), 150, 100, 0),
        (part(unknown=50, not_sent=50, already_sent=200, requests=1), 150, 50, 50),
        (part(not_sent=300), 150, 100, 0),
        (part(invalid=1, not_sent=299), 150, 100, 0),
        ({**part(), "rows": 0}, 150, 100, 0),
        ({**part(not_sent=500), "rows": 500}, 150, 100, 0),
    ],
    ids=[
        "treated as sent",
        "sent again",
        "lost again",
        "some of it",
        "refused before anything was looked up",
        "a row became invalid",
        "not read",
        "another table",
    ],
)
def test_what_was_known_before_a_question_stays_known(after, accepted, unknown, not_sent):
    """Only what was unknown can have become something else; the counts add up, whatever came after the answer."""
    summary = continued(FIRST, after, 1000)
    assert (summary["accepted"], summary["unknown"], summary["not_sent"]) == (accepted, unknown, not_sent)
    assert summary["rows"] == sum(summary[name] for name in COUNTS) == 300
    assert summary["duplicate"] == 50


def test_the_parts_of_a_try_are_added():
    """Requests, parts, costs, event ids and counters are of the whole try; above the limit there are no event ids."""
    before = {**FIRST, "error_report": {"NoContents": 3}, "cost_breakdown": {"Local": {"cost": 150.0, "quantity": 150}}}
    after = part(
        accepted=100,
        already_sent=200,
        requests=1,
        parts=100,
        cost=100.5,
        event_ids=["9"],
        error_report={"Faults": 1},
        cost_breakdown={"Local": {"cost": 100.5, "quantity": 100}},
        remaining_balance=7.0,
    )
    summary = continued(before, after, 4)
    assert (summary["requests"], summary["parts"], summary["cost"]) == (4, 250, 250.5)
    assert (summary["event_ids"], summary["remaining_balance"]) == (["1", "2", "9"], 7.0)
    assert summary["error_report"] == {"NoContents": 3, "Faults": 1}
    assert summary["cost_breakdown"] == {"Local": {"cost": 250.5, "quantity": 250}}
    assert continued(before, after, 3)["event_ids"] == []


def test_without_a_first_part_there_is_nothing_to_add():
    """A try that pushes no XComs has only what came after the answer."""
    assert continued(None, FIRST, 1000) == FIRST
