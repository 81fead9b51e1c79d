from __future__ import annotations

import time
from decimal import Decimal

import pytest
from sqlalchemy import text
from support.keys import request_of
from support.pages import ROOT, blocks
from support.sending import EVENT, accept, claim, claimant, close, people

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import Account, KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, LAPSED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.requests import named_requests, texted, unknown_requests
from airflow_provider_sms.planning.prices import Prices


@pytest.fixture
def clock():
    """The time of the world: a claim that these tests make is open."""
    return time.time


def sent(ledger, them, state=ACCEPTED, **fields):
    """Claim messages as one request, record what became of it, and return its id."""
    request_id = claim(ledger, them)
    close(ledger, request_id, state, **fields)
    return request_id


def test_unknown_requests_say_who_why_and_what_the_balance_tells(store, enter, open_reader):
    """All that a person needs to ask the service about them, of one campaign or of all; lapsed claims are among them.

    Requests that may still be under way are not, and most requests were never judged.
    """
    lapsed = claim(enter(clock=lambda: 1_000.0), people(5, 20))
    ledger = enter(2, map_index=7)
    accept(ledger, people(1))
    request_id = sent(ledger, people(3, 10), UNKNOWN, reason="read timeout")
    claim(ledger, people(1, 30))
    sent(enter(campaign="other"), people(2), UNKNOWN)
    evidence = KeptEvidence("not_charged", f"Request {request_id} was not charged for.", 1_700_000_000.0)
    note_evidence(store, "c", {request_id: evidence})
    first, row = unknown_requests(open_reader(), "c")
    assert (first.request_id, first.messages, first.reason, first.evidence) == (lapsed, 5, LAPSED, None)
    assert (row.request_id, row.campaign, row.messages, row.reason) == (request_id, "c", 3, "read timeout")
    assert (row.dag_id, row.task_id, row.run_id, row.map_index, row.try_number) == ("d", "t", "r", 7, 2)
    assert row.evidence == evidence
    assert [each.campaign for each in unknown_requests(store)] == ["c", "c", "other"]


def test_requests_are_found_by_their_numbers(store, enter):
    """Each once, in order, in its state of now, with all digits of its event id; one that is missing is named."""
    ledger = enter()
    lapsed, refused = claim(enter(clock=lambda: 1_000.0), people(1)), sent(ledger, people(1, 1), NOT_SENT)
    taken, open_ = accept(ledger, people(1, 10)), claim(ledger, people(1, 20))
    found = named_requests(store, [open_, taken, refused, lapsed, taken])
    assert [(row.request_id, row.state, row.event_id) for row in found] == [
        (lapsed, UNKNOWN, None),
        (refused, NOT_SENT, None),
        (taken, ACCEPTED, EVENT),
        (open_, CLAIMED, None),
    ]
    for other in (4711, 0, -5, 2**63, 10**30):
        with pytest.raises(InputError, match=f"no request {other}$"):
            named_requests(store, [taken, other])


def test_more_requests_are_found_than_fit_in_one_question(store, enter):
    """Databases limit the values of a question; requests are asked for in portions."""
    ledger = enter()
    chunks = [request_of([m.key], [m.destination]) for m in people(1010)]
    ids = [claimed.request_id for claimed in ledger.commit(chunks=chunks, claim_seconds=60.0)]
    assert [row.request_id for row in named_requests(store, ids)] == ids


def test_a_number_is_found_in_every_campaign(store, enter):
    """What texted a number, in order, with what became of it; neither others' requests, nor what was not sent."""
    first = accept(enter(), people(3))
    accept(enter(), people(3, 50))
    second = claim(enter(campaign="other", dag_id="d2"), people(2))
    sent(enter(campaign="third"), people(1), NOT_SENT)
    rows = texted(store, people(1)[0].destination)
    assert [(row.request_id, row.campaign, row.state, row.messages, row.event_id) for row in rows] == [
        (first, "c", ACCEPTED, 1, EVENT),
        (second, "other", CLAIMED, 1, None),
    ]


def test_responses_are_those_of_this_task_in_request_order(enter):
    """A retry sees those of earlier tries of its task, and of no other task or mapped copy."""
    first, other, copy, retry = enter(1), enter(1, task_id="other"), enter(1, map_index=1), enter(2)
    for start, ledger in enumerate([first, other, first, copy]):
        sent(ledger, people(1, start), response=f'{{"EventId": {start}}}')
    assert retry.responses(10) == ['{"EventId": 0}', '{"EventId": 2}']
    assert retry.responses(1) == ['{"EventId": 0}']
    assert (retry.count_responses(), copy.responses(10)) == (2, ['{"EventId": 3}'])


def test_the_answer_to_a_message_is_found_whoever_sent_it(enter):
    """Another run of the campaign can read what became of a message."""
    first = enter(1)
    sent(first, people(1), response="{}")
    other = enter(1, run_id="other")
    assert other.response_to(people(1)[0].key) == "{}"
    assert other.response_to(people(1, 5)[0].key) is None


def test_the_requests_of_an_attempt_are_those_of_all_its_processes(enter):
    """Those in the campaign, up to this process, and nothing that was surely not sent unless the service refused it."""
    first = enter(2)
    sent(first, people(3), messages=2, response='{"EventId": 1}')
    sent(first, people(1, 10), UNKNOWN)
    sent(first, people(1, 11), NOT_SENT)
    sent(first, people(1, 12), NOT_SENT, response='{"EventId": 2}')
    sent(enter(2, campaign="other"), people(2, 20))
    sent(enter(1), people(1, 30))
    sent(enter(2), people(1, 40))
    last = enter(2)
    claim(last, people(1, 50))
    sent(enter(2), people(1, 60))
    found = [(row.state, row.submitted, row.taken, row.response) for row in last.sent_requests()]
    assert sorted(found, key=str) == [
        (ACCEPTED, 1, None, None),
        (ACCEPTED, 3, 2, '{"EventId": 1}'),
        (CLAIMED, 1, None, None),
        (NOT_SENT, 1, None, '{"EventId": 2}'),
        (UNKNOWN, 1, None, None),
    ]


def test_requests_are_written_while_those_of_an_attempt_are_read(enter):
    """Reading the responses one after the other keeps no claim waiting."""
    ledger = enter(2)
    for n in range(150):
        sent(ledger, people(1, n))
    requests = ledger.sent_requests()
    next(requests)
    sent(ledger, people(1, 500))
    assert len(list(requests)) >= 149


@pytest.mark.parametrize(("resends", "expected"), [(False, (6, Decimal("0.6"))), (True, (4, Decimal("0.4")))])
def test_what_a_task_sent_after_a_plan_is_added_up(store, enter, resends, expected):
    """By all its attempts; what is sent again is part of the next plan, and counts there."""
    account = Account("a" * 32, Prices("0.1").total)
    first, second = (CampaignLedger(store, "c", claimant(number), account=account) for number in (1, 2))
    assert (first.last_request(), first.sent_after(0, resends=False)) == (0, (0, Decimal(0)))
    accept(first, people(5))
    plan = first.last_request()
    accept(first, people(1, 10))
    for place, state in enumerate((UNKNOWN, NOT_SENT, ACCEPTED)):
        sent(second, people(2, 20 + 2 * place), state)
    claim(second, people(1, 30))
    accept(enter(task_id="other"), people(1, 40))
    accept(enter(map_index=1), people(1, 41))
    second.supersede([sent(second, people(1, 50), UNKNOWN)])
    assert enter(3).sent_after(plan, resends=resends) == expected


def test_the_pages_query_lists_whom_a_campaign_texted(store, enter):
    """Each message is there with its request's state and its task, and no other campaign's."""
    for campaign in ("reminders", "offers"):
        ledger = enter(campaign=campaign)
        accept(ledger, people(1))
        sent(ledger, people(1, 1), UNKNOWN)
    (query,) = (block.code for block in blocks(ROOT / "docs" / "ledger.md", "sql") if "sms_superseded" in block.code)
    with store.read() as connection:
        rows = connection.execute(text(query)).all()
    assert sorted((row.destination, row.state, row.event_id, row.dag_id, row.task_id) for row in rows) == [
        (int(people(1)[0].destination), ACCEPTED, EVENT, "d", "t"),
        (int(people(1, 1)[0].destination), UNKNOWN, None, "d", "t"),
    ]
