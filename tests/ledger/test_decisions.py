from __future__ import annotations

import time
from unittest.mock import Mock

import pytest
from support.reported import counts
from support.sending import chunk_of, claim, close, people

from airflow_provider_sms.exceptions import InputError, LedgerAwayError
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.decisions import close_by_balance, require_unknown, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN, Outcome
from airflow_provider_sms.ledger.requests import named_requests

PROOF = KeptEvidence("charged", "The balance fell by 3 more than the responses account for.", 5.0)
PRICED = PROOF._replace(amount="3.3")
UNDECIDED_SUM = PRICED._replace(verdict="undecided")


@pytest.fixture
def first(enter):
    """The try that claims before the others."""
    return enter()


@pytest.fixture
def unknown(first):
    """A request of three messages whose response was lost."""
    request_id = claim(first, people(3))
    close(first, request_id, UNKNOWN, reason="timeout")
    return request_id


def test_what_the_balance_closes_is_told_though_its_commit_is_not(store, unknown, monkeypatch):
    """The next try finds it closed, and it was closed by this process all the same."""
    monkeypatch.setattr(store, "_require_durable", Mock(side_effect=[LedgerAwayError("away"), None]))
    store.patience = Patience(sleep=lambda _: None)
    assert close_by_balance(store, "c", {unknown: (NOT_SENT, PROOF)}) == {unknown: 3}


@pytest.mark.parametrize(("said", "free"), [(ACCEPTED, 0), (NOT_SENT, 3)])
def test_a_person_closes_what_is_unknown(store, enter, unknown, rows, said, free):
    """What was sent stays claimed, what was not is free; the ledger keeps what was decided, by whom and when."""
    assert resolve(store, unknown, said, "ann") == 3
    assert len(enter(2).commit(chunks=[chunk_of(people(3))], claim_seconds=60.0)[0].won) == free
    (found,) = [
        row
        for row in rows("SELECT id, state, decision, decided_by, decided_at FROM sms_request ORDER BY id")
        if row[0] == unknown
    ]
    assert found == (unknown, said, said, "ann", pytest.approx(time.time(), abs=60))


def test_a_claim_past_its_deadline_can_be_closed(store, first, rows, clock):
    """What a dead process left behind is unknown, written down or not; as far as anybody knows, it was sent at once."""
    store.clock = clock
    request_id, other = claim(first, people(1)), claim(first, people(1, 1))
    claimed_at = clock.now
    assert close_by_balance(store, "c", {other: (ACCEPTED, PROOF)}) == {}
    clock.now += 61
    assert close_by_balance(store, "c", {other: (ACCEPTED, PROOF)}) == {other: 1}
    assert resolve(store, request_id, ACCEPTED, "ann") == 1
    assert rows("SELECT state, finished_at FROM sms_request") == [(ACCEPTED, claimed_at)] * 2


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (CLAIMED, r"may still be under way.*UTC"),
        (ACCEPTED, "it is accepted"),
        (NOT_SENT, "it is not sent"),
        (SUPERSEDED, "sent again"),
    ],
)
def test_only_what_is_unknown_is_up_to_somebody(store, enter, rows, state, words):
    """The error says what it is, also before anybody is asked; until its deadline a claim may get an outcome."""
    ledger = enter(clock=time.time)
    request_id = claim(ledger, people(1))
    if state == SUPERSEDED:
        close(ledger, request_id, UNKNOWN)
        ledger.supersede([request_id])
    elif state != CLAIMED:
        close(ledger, request_id, state)
    with pytest.raises(InputError, match=words):
        require_unknown(*named_requests(store, [request_id]))
    with pytest.raises(InputError, match=words):
        resolve(store, request_id, NOT_SENT, "ann")
    assert rows("SELECT state, decided_at FROM sms_request ORDER BY id") == [(state, None)]


@pytest.mark.parametrize("request_id", [77, 0, -1, 2**63, 10**23])
def test_a_number_of_no_request_is_named(store, request_id):
    """Also one that the database cannot hold."""
    with pytest.raises(InputError, match=f"no request {request_id}"):
        resolve(store, request_id, ACCEPTED, "ann")


def test_the_balance_closes_requests(store, first, unknown, rows):
    """Those that were charged hold their messages, the others free theirs; the ledger says why, and who: nobody."""
    other, third = (claim(first, people(2, start)) for start in (10, 20))
    first.commit(outcomes=[Outcome(each, UNKNOWN, reason="timeout") for each in (other, third)])
    closed = {unknown: (ACCEPTED, PRICED), other: (NOT_SENT, PROOF), third: (ACCEPTED, PROOF)}
    assert close_by_balance(store, "c", closed) == {unknown: 3, other: 2, third: 2}
    assert rows("SELECT state, decision, cost, reason, decided_by FROM sms_request ORDER BY id") == [
        (ACCEPTED, ACCEPTED, "3.3", PROOF.words, "balance"),
        (NOT_SENT, NOT_SENT, None, PROOF.words, "balance"),
        (ACCEPTED, ACCEPTED, None, PROOF.words, "balance"),
    ]
    assert {row.evidence for row in named_requests(store, closed)} == {PRICED, PROOF}
    assert rows("SELECT count(*) FROM sms_message") == [(5,)]


@pytest.mark.parametrize(("evidence", "cost"), [(PRICED, "3.3"), (PROOF, None), (UNDECIDED_SUM, None)])
@pytest.mark.parametrize(("said", "is_counted"), [(ACCEPTED, True), (NOT_SENT, False)])
def test_a_person_who_says_that_it_was_sent_says_what_the_balance_knows_of_its_cost(
    store, unknown, rows, evidence, cost, said, is_counted
):
    """Evidence that a request was charged for states the cost of one that a person closes as sent, if it knows that."""
    note_evidence(store, "c", {unknown: evidence})
    resolve(store, unknown, said, "ann")
    assert rows("SELECT cost FROM sms_request ORDER BY id") == [(cost if is_counted else None,)]
    assert counts(store).of_unknown_cost == (1 if is_counted and cost is None else 0)


@pytest.mark.parametrize("state", [ACCEPTED, NOT_SENT])
def test_an_outcome_is_better_founded_than_the_balance(store, first, unknown, state, rows):
    """A request that has one by then keeps it, and with it the words of before."""
    close(first, unknown, state, reason="told", response="{}")
    assert close_by_balance(store, "c", {unknown: (ACCEPTED, PRICED)}) == {}
    assert rows("SELECT state, reason, cost, evidence, decided_at FROM sms_request ORDER BY id") == [
        (state, "told", None, None, None)
    ]


@pytest.mark.parametrize("said", [ACCEPTED, NOT_SENT])
@pytest.mark.parametrize("decided_by", ["balance", "ann"])
def test_a_late_response_is_better_founded_than_any_decision(store, first, unknown, decided_by, said, rows):
    """What the service says at last is recorded, with its messages and its cost."""
    if decided_by == "balance":
        close_by_balance(store, "c", {unknown: (said, PRICED)})
    else:
        resolve(store, unknown, said, decided_by)
    close(first, unknown, messages=3, cost="3", response="{}", event_id=5)
    assert rows("SELECT state, cost, reason, response, event_id FROM sms_request ORDER BY id") == [
        (ACCEPTED, "3", None, "{}", 5)
    ]
    assert {holder.request_id for holder in first.holders([m.key for m in people(3)]).values()} == {unknown}
    assert first.texted_twice() == []
