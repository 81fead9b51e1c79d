from __future__ import annotations

import pytest
from support.sending import failing, people

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.requests import unknown_requests
from airflow_provider_sms.reporting.summary import COUNTS, replay, summarise

LOST = UnknownOutcomeError("lost")


@pytest.fixture
def go_on(sender, enter):
    """Go on with a try that waited, as a process of its own, and give the summary of the whole."""

    def go_on(rows, **options):
        ledger = enter(resumed=True)
        send = sender(ledger, **options)
        replay(ledger, send.tally)
        send.run(rows)
        summary = summarise("c", sum(map(len, rows)), 0, send.tally)
        assert summary["rows"] == sum(summary[name] for name in COUNTS)
        return summary

    return go_on


def counts(summary):
    return {name: summary[name] for name in COUNTS if summary[name]}


def test_the_parts_of_a_try_add_up(sender, enter, service, go_on):
    """What the first part sent is accepted, not sent already; its rows are there again, and so are their repeats."""
    sender(enter()).run([people(30)])
    summary = go_on([people(50), people(5)])
    assert counts(summary) == {"accepted": 50, "duplicate": 5}
    assert (summary["requests"], len(summary["event_ids"]), summary["cost"]) == (5, 5, 75.0)
    assert service.duplicates == 0


def test_what_other_tries_sent_is_sent_already(sender, enter, go_on):
    """Only parts of the same try are its own."""
    sender(enter(1, run_id="other")).run([people(10)])
    sender(enter()).run([people(10, 10)])
    assert counts(go_on([people(30)])) == {"accepted": 20, "already_sent": 10}


def test_a_lost_answer_of_an_earlier_part_stays_unknown(sender, enter, service, go_on):
    """Each message once; a repeat of it is a repeat, in another block, too."""
    service.script = [failing(LOST)]
    sender(enter(), concurrency=1).run([people(20)])
    summary = go_on([people(30), people(5)])
    assert counts(summary) == {"accepted": 20, "unknown": 10, "duplicate": 5}
    assert summary["requests"] == 3


def test_what_a_person_calls_sent_is_accepted(sender, enter, service, store, go_on):
    """There is no answer of the service, and so no cost."""
    service.script = [failing(LOST)]
    sender(enter(), concurrency=1).run([people(20)])
    (lost,) = unknown_requests(store)
    resolve(store, lost.request_id, ACCEPTED, "ann")
    summary = go_on([people(20)])
    assert (counts(summary), summary["requests"], summary["cost"]) == ({"accepted": 20}, 2, 15.0)


def test_a_request_that_was_taken_in_part_is_counted_so_again(sender, enter, service, go_on):
    """What the service left out is not sent, in the first part and in the whole."""
    service.script = [lambda service, messages, number: service.take(messages, number, 3)]
    ledger = enter()
    sender(ledger, concurrency=1).run([people(10)])
    summary = go_on([people(20)])
    assert summary["accepted"] + summary["not_sent"] == 20


def test_whoever_is_capped_is_counted_and_not_texted(sender, enter, service):
    """Two campaigns of a group: the second one leaves out whom the first one texted, and says so."""
    cap = FrequencyCap("marketing", 3600.0)
    sender(enter(campaign="a", cap=cap)).run([people(15)])
    send = sender(enter(campaign="b", cap=cap))
    send.run([people(25, 5)])
    assert (send.tally.accepted, send.tally.capped, send.tally.settled) == (15, 10, 25)
    assert send.tally.seen.capped.among(0, 1) == {0}
    assert service.duplicates == 0
