from __future__ import annotations

import json
from collections import Counter
from decimal import Context, Decimal, localcontext

import pytest
from support.checked import check_into
from support.sending import answer, failing, people

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.ledger.account import CHARGED, KeptEvidence
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.request_queries import unknown_requests
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.reporting.summary import COUNTS, one_line, replay, summarise, with_report
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.request_batch import RequestBatch
from airflow_provider_sms.sending.response_handler import answered
from airflow_provider_sms.service.responses import NetworkCost, parse_send_response

LOST = UnknownOutcomeError("lost")


def test_the_summary_has_the_documented_shape():
    """Names and types of the summary are a contract with whoever reads the XCom."""
    tally = SendCounts()
    tally.add_accepted(100, answer(12_345_678_901, 100))
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
        "reconciled": 0,
        "left_out": 0,
        "requests": 1,
        "parts": 100,
        "cost": 150.0,
        "remaining_balance": 1000.0,
        "cost_breakdown": {},
        "error_report": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": 0},
        "report": None,
    }


def test_rows_are_the_sum_of_the_counts_whenever_sending_ended():
    """What nothing accounts for was not sent."""
    tally = SendCounts(unknown=10, duplicate=2, already_sent=5)
    tally.add_accepted(20, answer(1, 17, left_out=3))
    summary = summarise("c", 100, 4, tally)
    assert (summary["not_sent"], sum(summary[name] for name in COUNTS)) == (62, 100)


def test_messages_that_the_balance_told_of_are_in_another_count_as_well():
    """They are accepted or not sent; how many the balance told of stands beside the counts that add up to the rows."""
    tally = SendCounts(accepted=70, not_sent=30, reconciled=20)
    summary = summarise("c", 100, 0, tally)
    assert (summary["reconciled"], sum(summary[name] for name in COUNTS)) == (20, 100)


def test_the_line_of_the_log_has_the_balance_only_where_it_told_something():
    """Most sends lose no response."""
    summary = summarise("c", 0, 0, SendCounts())
    plain = one_line(summary)
    assert plain.endswith("; 0 requests, 0 parts, cost 0.0")
    assert one_line({**summary, "reconciled": 200}) == f"{plain}; the balance told what became of 200 messages"


def test_the_lines_of_the_log_say_one_in_the_singular():
    """One request of one SMS part, and a send of one message."""
    summary = {**summarise("c", 1, 0, SendCounts(accepted=1)), "requests": 1, "parts": 1, "reconciled": 1}
    assert one_line(summary).endswith("; 1 request, 1 part, cost 0.0; the balance told what became of 1 message")


@pytest.mark.parametrize("networks", [1, 400])
def test_the_summary_takes_less_than_2_kb(networks):
    """With the longest values that there are; the networks that cost least are in one, and none is lost."""
    most = 2**63 - 1
    tally = SendCounts(unknown=most, duplicate=most, suppressed=most, already_sent=most, reconciled=most, partial=most)
    tally.requests = tally.parts = most
    tally.cost, tally.remaining_balance = Decimal("123456789012345.123456"), Decimal("-123456789012345.123456")
    tally.error_report.update({"NoNetwork": most, "Duplicates": most, "OptedOuts": most, "Faults": most, "x" * 99: 1})
    tally.cost_breakdown = {f"{number:030}": (Decimal(f"{number}.123456"), most) for number in range(networks)}
    summary = with_report(summarise("\U0001f600" * 1000, most, most, tally), "/" + "\u00e9" * 4000)
    assert len(json.dumps(summary)) < 2000
    assert sum(each["quantity"] for each in summary["cost_breakdown"].values()) == most * networks
    assert sum(each["cost"] for each in summary["cost_breakdown"].values()) == pytest.approx(
        sum(float(cost) for cost, _ in tally.cost_breakdown.values())
    )


def test_a_name_and_a_place_of_usual_length_are_whole():
    """The default name of a campaign has at most 752 characters."""
    summary = with_report(summarise("c" * 752, 0, 0, SendCounts()), "s3://bucket/" + "r" * 250)
    assert (summary["campaign"], summary["report"]) == ("c" * 752, "s3://bucket/" + "r" * 250)


def test_costs_are_added_exactly():
    """Money is added as decimals: ten times 0.1 is 1."""
    tally = SendCounts()
    body = (
        b'{"Cost": 0.1, "RemainingBalance": 9.9, "EventId": 1, "Messages": 1, "Parts": 1,'
        b' "CostBreakDown": [{"Network": "Local", "Cost": 0.1, "Quantity": 1}]}'
    )
    response = parse_send_response(body)
    assert response.cost_breakdown == (NetworkCost("Local", Decimal("0.1"), 1),)
    for _ in range(10):
        tally.add_accepted(1, response)
    summary = summarise("c", 10, 0, tally)
    assert (summary["cost"], summary["cost_breakdown"]) == (1.0, {"Local": {"cost": 1.0, "quantity": 10}})


def test_error_reports_are_added():
    """Faults as a count only, and without counters of any other name."""
    tally = SendCounts()
    body = (
        b'{"Cost": 1, "RemainingBalance": 9, "EventId": 1, "Messages": 1, "Parts": 1, "ErrorReport":'
        b' {"NoNetwork": 1, "Duplicates": 0, "OptedOuts": 2, "NoContents": 4,'
        b' "Faults": [{"rawDestination": "27821234567"}]}}'
    )
    for _ in range(2):
        tally.add_accepted(9, parse_send_response(body))
    assert summarise("c", 18, 0, tally)["error_report"] == {
        "NoNetwork": 2,
        "Duplicates": 0,
        "OptedOuts": 4,
        "Faults": 2,
    }


def test_the_balance_is_the_last_one_seen():
    """The remaining balance is that of the last answer; without one there is none."""
    tally = SendCounts()
    assert summarise("c", 0, 0, tally)["remaining_balance"] is None
    tally.add_accepted(1, answer(1, 1))
    assert summarise("c", 1, 0, tally)["remaining_balance"] == 1000.0


def test_what_a_try_sent_before_it_waited_counts_as_its_own():
    """The counts of its requests are those of the whole attempt."""
    tally = SendCounts()
    tally.replay(100, answer(12_345_678_901, 98, 2))
    tally.replay(50, None)
    tally.add_accepted(40, answer(12_345_678_903, 40))
    summary = summarise("c", 190, 0, tally)
    assert counts(summary) == {"accepted": 188, "not_sent": 2}
    assert summary["requests"] == 3


def test_what_was_not_looked_up_again_is_not_counted_twice():
    """A part that ends early leaves what was sent before it accepted, and the rest not sent."""
    tally = SendCounts()
    tally.replay(100, answer(1, 100))
    assert counts(summarise("c", 150, 0, tally)) == {"accepted": 100, "not_sent": 50}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (400, {"accepted": 100, "unknown": 100, "not_sent": 200}),
        (150, {"accepted": 100, "unknown": 50}),
        (50, {"accepted": 50}),
    ],
)
def test_what_may_have_been_sent_is_unknown_before_any_row_is_looked_up(rows, expected):
    """A leg that ends in its check hides no unknown message of an earlier one, and its counts add up."""
    tally = SendCounts()
    tally.replay(100, answer(1, 100))
    tally.unread_unknown = 100
    assert counts(summarise("c", rows, 0, tally)) == expected


def test_messages_whose_rows_are_gone_are_not_counted():
    """The counts are of the source as it is: they add up to its rows, also where it has lost some that were sent."""
    tally = SendCounts()
    tally.replay(100, answer(1, 100))
    assert counts(summarise("c", 90, 0, tally)) == {"accepted": 90}


def test_messages_whose_rows_are_gone_hide_no_row_that_was_not_sent():
    """Nor does a request that was taken in part make a count negative."""
    tally = SendCounts(listed=0)
    tally.replay(100, answer(1, 100))
    assert counts(summarise("c", 50, 0, tally)) == {"not_sent": 50}
    tally.replay(100, answer(2, 60))
    assert counts(summarise("c", 50, 0, tally)) == {"not_sent": 50}
    tally.add_accepted(40, answer(3, 40))
    assert counts(summarise("c", 50, 0, tally)) == {"accepted": 40, "not_sent": 10}


def test_rows_that_were_checked_are_in_the_summary_before_anything_is_sent():
    """Each in the count of its status; what this attempt sent before a wait is counted by its requests."""
    tally = SendCounts()
    tally.replay(10, answer(1, 10))
    statuses = Counter({status: 1 + status for status in Status if status != Status.INVALID})
    tally.add_checked(statuses)
    summary = summarise("c", statuses.total() + 3, 3, tally)
    assert counts(summary) == {
        "accepted": 5,
        "unknown": 2 + 3,
        "not_sent": 1,
        "invalid": 3,
        "duplicate": 7,
        "suppressed": 6,
        "already_sent": 4,
    }


def test_a_request_that_was_closed_since_its_attempt_was_counted_is_sent():
    """The check finds more messages accepted by this attempt than its requests had a moment before."""
    tally = SendCounts()
    tally.replay(10, answer(1, 10))
    tally.add_checked(Counter({Status.ACCEPTED: 15}))
    assert counts(summarise("c", 15, 0, tally)) == {"accepted": 10, "already_sent": 5}


def counts(summary):
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


@pytest.fixture
def go_on(sender, enter):
    """Go on with an attempt after a deferral, as a process of its own, and return the summary of all its legs."""

    def go_on(rows, **options):
        ledger = enter(resumed=True)
        send = sender(ledger, **options)
        replay(ledger, send.counts)
        send.run([check_into(send.counts, ledger, [message for some in rows for message in some])])
        summary = summarise("c", sum(map(len, rows)), 0, send.counts)
        assert summary["rows"] == sum(summary[name] for name in COUNTS)
        return summary

    return go_on


def test_the_legs_of_an_attempt_add_up(sender, enter, service, go_on):
    """What the first leg sent is accepted, not sent already; its rows are there again, and so are their repeats."""
    sender(enter()).run([people(30)])
    summary = go_on([people(50), people(5)])
    assert counts(summary) == {"accepted": 50, "duplicate": 5}
    assert (summary["requests"], summary["cost"]) == (5, 75.0)
    assert service.duplicates == 0


def test_decimals_of_other_code_do_not_round_the_cost(sender, enter):
    """A DAG's file may compute with two digits: the cost of earlier legs is the sum of what the responses say."""
    first, later = sender(enter()), SendCounts()
    first.run([people(30)])
    with localcontext(Context(prec=1)):
        replay(enter(resumed=True), later)
    assert later.cost == first.counts.cost == 45


def test_the_balance_of_earlier_legs_is_that_of_their_last_response(enter, clock, go_on):
    """Responses need not have come in the order of the requests."""
    ledger = enter()
    batches = [RequestBatch(people(1, first), {}) for first in (0, 1)]
    claims = ledger.commit(chunks=[batch.chunk for batch in batches], claim_seconds=60.0)
    for balance, claim, batch in reversed(list(zip((900, 950), claims, batches, strict=True))):
        clock.now += 1.0
        response = answer(claim.request_id, 1)
        response.raw["RemainingBalance"] = balance
        ledger.commit(outcomes=[answered(claim.request_id, response, batch)])
    assert go_on([people(2)])["remaining_balance"] == 900.0


def test_what_other_attempts_sent_is_sent_already(sender, enter, go_on):
    """Only legs of the same attempt are its own."""
    sender(enter(1, run_id="other")).run([people(10)])
    sender(enter()).run([people(10, 10)])
    assert counts(go_on([people(30)])) == {"accepted": 20, "already_sent": 10}


def test_a_lost_response_of_an_earlier_leg_stays_unknown(sender, enter, service, go_on):
    """Each message once; a repeat of it is a repeat, in another block, too."""
    service.script = [failing(LOST)]
    sender(enter(), concurrency=1).run([people(20)])
    summary = go_on([people(30), people(5)])
    assert counts(summary) == {"accepted": 20, "unknown": 10, "duplicate": 5}
    assert summary["requests"] == 3


def test_what_a_person_calls_sent_is_accepted(sender, enter, service, store, go_on):
    """There is no response of the service, and so no cost."""
    service.script = [failing(LOST)]
    sender(enter(), concurrency=1).run([people(20)])
    (lost,) = unknown_requests(store)
    resolve(store, lost.request_id, ACCEPTED, "ann")
    summary = go_on([people(20)])
    assert (counts(summary), summary["requests"], summary["cost"]) == ({"accepted": 20}, 2, 15.0)


def test_what_the_balance_tells_of_a_request_is_counted_after_a_wait(sender, enter, service, store, go_on):
    """The ledger keeps the cost and the parts of a request that the balance closed before the wait."""
    service.script = [failing(LOST)]
    sender(enter(), concurrency=1).run([people(20)])
    (lost,) = unknown_requests(store)
    evidence = KeptEvidence(CHARGED, "the balance fell", 0.0, amount="12.5")
    close_by_balance(store, "c", {lost.request_id: (ACCEPTED, evidence)})
    summary = go_on([people(20)])
    assert (counts(summary), summary["requests"]) == ({"accepted": 20}, 2)
    assert (summary["parts"], summary["cost"]) == (20, 27.5)


def test_a_request_that_was_taken_in_part_is_counted_so_again(sender, enter, service, go_on):
    """What the service left out is not sent, in the first leg and in the whole."""
    service.script = [lambda service, messages, number: service.take(messages, number, 3)]
    ledger = enter()
    sender(ledger, concurrency=1).run([people(10)])
    summary = go_on([people(20)])
    assert summary["accepted"] + summary["not_sent"] == 20
