from __future__ import annotations

import getpass

import pytest
from support.sending import claimant, people

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN


@pytest.mark.parametrize(
    ("outcome", "left", "risk"),
    [("accepted", {ACCEPTED}, "not take is never sent"), ("not-sent", set(), "take is sent twice")],
)
def test_a_person_at_a_terminal_closes_requests(ledger, sent, holders, at_terminal, rows, outcome, left, risk):
    """The command first explains the change and what a wrong one does; it records the person, and says what is next."""
    one = sent(people(3), UNKNOWN)
    two = sent(people(2, 10), UNKNOWN)
    at_terminal("y\n")
    said = ledger("resolve", one, two, "--as", outcome)
    assert said.status == 0
    assert "2 unknown requests of spring with 5 messages, claimed from 20" in said.err
    assert "  2 requests with 5 messages: read timeout\n" in said.err
    explained, asked, _ = said.err.partition(f"Close 2 requests as {outcome.replace('-', ' ')}? [y/N]")
    assert (bool(asked), f"{risk}.\n" in explained) == (True, True)
    assert f"Closed as {outcome.replace('-', ' ')}: 2 of 2 requests, 5 messages\n" in said.err
    assert said.err.endswith("so that it runs again:\n  task t of DAG d, run r\n")
    assert holders(people(3) + people(2, 10)) == left
    decided = rows("SELECT id, decision, decided_by FROM sms_request WHERE decided_at > 0 ORDER BY id")
    word = outcome.replace("-", "_")
    assert decided == [(one, word, getpass.getuser()), (two, word, getpass.getuser())]


def test_every_task_that_failed_on_the_requests_is_named(ledger, sent, store):
    """Others that met them need to be cleared as well, once each; those that need nothing are not named."""
    request = sent(people(3), UNKNOWN, map_index=0)
    for map_index, state, unknown in ((0, "failed", 3), (1, "failed", 3), (2, "ended", 0), (3, "failed", 0)):
        claimant_id = register(store, claimant(2, map_index=map_index))
        note_progress(store, "spring", claimant_id, state, figures={"unknown": unknown})
    said = ledger("resolve", request, "--as", "accepted", "--yes")
    assert said.err.endswith(
        "Now clear the failed tasks in Airflow, so that they run again:\n"
        "  task t of DAG d, run r, map index 0\n"
        "  task t of DAG d, run r, map index 1\n"
    )


@pytest.fixture
def weighed(store, sent):
    """Return requests that were charged, not charged, undecided and never judged."""
    ids = [sent(people(1, 10 * place), UNKNOWN) for place in range(4)]
    for each, verdict in zip(ids, ("charged", "not_charged", "undecided"), strict=False):
        note_evidence(store, "spring", {each: KeptEvidence(verdict, f"Sum of request {each}.", 1.0)})
    return ids


def test_what_the_balance_tells_is_shown_before_a_decision(ledger, weighed, at_terminal):
    """Before the question, also where all requests of a campaign are closed."""
    for arguments in (weighed, ("--campaign", "spring")):
        at_terminal("n\n")
        shown, asked, _ = ledger("resolve", *arguments, "--as", "accepted").err.partition("Close 4 requests")
        assert asked
        assert "The balance: 1 request charged, 1 request not charged, 1 request undecided\n" in shown
        assert [shown.count(f"\n  Sum of request {each}.\n") for each in weighed] == [1, 1, 1, 0]


@pytest.mark.parametrize(("outcome", "place"), [("accepted", 1), ("not-sent", 0)])
def test_a_decision_against_the_balance_is_named_and_carried_out(ledger, weighed, rows, outcome, place):
    """A person may know better: somebody else may have spent from the account."""
    said = ledger("resolve", *weighed, "--as", outcome, "--yes")
    verdict = ("charged", "not charged")[place]
    line = f"The balance contradicts this: by it, request {weighed[place]} was {verdict}\n"
    assert (said.status, said.err.count("contradicts"), line in said.err) == (0, 1, True)
    assert rows("SELECT DISTINCT state FROM sms_request") == [(outcome.replace("-", "_"),)]


def test_requests_are_closed_all_or_none(ledger, sent, rows):
    """If one of them cannot be closed nobody is asked, and no other one is closed."""
    request = sent(people(3), UNKNOWN)
    accepted = sent(people(3, 10))
    under_way = sent(people(3, 20), None)
    for other, words in (
        (accepted, "is not unknown: it is accepted"),
        (under_way, "may still be under way"),
        (4711, "no request 4711"),
    ):
        said = ledger("resolve", request, other, "--as", "accepted", "--yes")
        assert (said.status, words in said.err) == (1, True)
    assert rows(f"SELECT state FROM sms_request WHERE id = {request}") == [(UNKNOWN,)]


def test_a_request_named_twice_is_closed_once(ledger, sent, rows):
    """A repeated number is no second decision."""
    request = sent(people(3), UNKNOWN)
    assert ledger("resolve", request, request, "--as", "accepted", "--yes").status == 0
    assert len(rows("SELECT id FROM sms_request WHERE decided_at > 0")) == 1


def test_a_request_that_has_an_outcome_by_the_answer_keeps_it(ledger, sent, store, rows, at_terminal):
    """The others are closed, and the tasks to clear are named: nobody has to guess which requests are left."""
    first, second, third = (sent(people(1, start), UNKNOWN) for start in (0, 10, 20))
    at_terminal(lambda: (resolve(store, second, ACCEPTED, "bob"), "y\n")[1])
    said = ledger("resolve", first, second, third, "--as", "not-sent")
    states = [("not_sent",), ("accepted",), ("not_sent",)]
    assert (said.status, rows("SELECT state FROM sms_request ORDER BY id")) == (1, states)
    assert f"Request {second} is not unknown: it is accepted\n" in said.err
    assert said.err.endswith("  task t of DAG d, run r\n1 request could not be closed\n")
