from __future__ import annotations

import getpass
import time

import pytest
from sqlalchemy import text
from support.sending import claimant, people

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome

BAD_GATEWAY, TIMEOUT = "bulkmessages: HTTP 502", "bulkmessages: no answer within 30 s"
OF_SPRING = ("--campaign", "spring")


@pytest.fixture
def states(rows):
    """Count the requests of a campaign by state."""

    def states(campaign="spring"):
        query = "SELECT state, count(*) FROM sms_request JOIN sms_campaign ON sms_campaign.id = campaign_id"
        return dict(rows(f"{query} WHERE name = '{campaign}' GROUP BY state"))

    return states


@pytest.mark.parametrize("whole", [False, True], ids=["by number", "all of a campaign"])
@pytest.mark.parametrize(
    ("outcome", "left", "meaning"),
    [
        ("accepted", {ACCEPTED}, "Anything that the service did not take is never sent.\n"),
        (
            "not-sent",
            set(),
            "frees 25 messages for the next attempt. Anything that the service did take is sent twice.\n",
        ),
    ],
)
def test_a_person_at_a_terminal_closes_requests(
    ledger, sent, holders, at_terminal, rows, whole, outcome, left, meaning
):
    """The command first explains the change and what a wrong one does; it records the person, and says what is next."""
    ids = [sent(people(1, place), UNKNOWN, reason=BAD_GATEWAY, map_index=0) for place in range(20)]
    ids += [sent(people(1, place), UNKNOWN, reason=TIMEOUT, map_index=1) for place in range(20, 25)]
    at_terminal("y\n")
    said = ledger("resolve", *(OF_SPRING if whole else ids), "--as", outcome)
    assert said.status == 0
    assert "25 unknown requests of spring with 25 messages, claimed from 20" in said.err
    explained, asked, _ = said.err.partition(f"Close 25 requests as {outcome.replace('-', ' ')}? [y/N]")
    assert (bool(asked), meaning in explained) == (True, True)
    assert f"Closed as {outcome.replace('-', ' ')}: 25 of 25 requests, 25 messages\n" in said.err
    tasks = "".join(f"  task t of DAG d, run r, map index {index}\n" for index in (0, 1))
    assert said.err.endswith(f"Now clear the failed tasks in Airflow, so that they run again:\n{tasks}")
    assert holders(people(25)) == left
    decided = rows("SELECT id, decision, decided_by FROM sms_request WHERE decided_at > 0 ORDER BY id")
    assert decided == [(each, outcome.replace("-", "_"), getpass.getuser()) for each in ids]


@pytest.fixture
def weighed(store, sent):
    """Return requests that were charged, not charged, undecided and never judged."""
    ids = [sent(people(1, 10 * place), UNKNOWN) for place in range(4)]
    for each, verdict in zip(ids, ("charged", "not_charged", "undecided"), strict=False):
        note_evidence(store, "spring", {each: KeptEvidence(verdict, f"Sum of request {each}.", 1.0)})
    return ids


@pytest.mark.parametrize(("outcome", "place"), [("accepted", 1), ("not-sent", 0)])
def test_what_the_balance_tells_is_shown_before_a_decision(ledger, weighed, at_terminal, rows, outcome, place):
    """One against it is named and carried out: somebody else may have spent from the account."""
    at_terminal("n\n")
    shown, asked, _ = ledger("resolve", *OF_SPRING, "--as", "accepted").err.partition("Close 4 requests")
    assert asked
    assert [shown.count(f"\n  Sum of request {each}.\n") for each in weighed] == [1, 1, 1, 0]
    said = ledger("resolve", *weighed, "--as", outcome, "--yes")
    verdict = ("charged", "not charged")[place]
    line = f"The balance contradicts this for request {weighed[place]}: {verdict}\n"
    assert (said.status, said.err.count("contradicts"), line in said.err) == (0, 1, True)
    assert rows("SELECT DISTINCT state FROM sms_request") == [(outcome.replace("-", "_"),)]


def test_requests_are_closed_all_or_none(ledger, sent, states, rows):
    """If one of them cannot be closed nobody is asked, and no other one is closed; one named twice is closed once."""
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
    assert states() == {UNKNOWN: 1, ACCEPTED: 1, "claimed": 1}
    assert ledger("resolve", request, request, "--as", "accepted", "--yes").status == 0
    assert rows("SELECT id FROM sms_request WHERE decided_at > 0") == [(request,)]


@pytest.mark.parametrize("arrives", ["a decision", "the response"])
def test_a_request_that_has_an_outcome_by_the_answer_keeps_it(ledger, sent, store, rows, at_terminal, arrives):
    """The others are closed, and the tasks to clear are named: nobody has to guess which requests are left."""
    ids = [sent(people(1, start), UNKNOWN) for start in (0, 10, 20)]
    ((its_attempt,),) = rows(f"SELECT attempt_id FROM sms_request WHERE id = {ids[1]}")

    def answer():
        if arrives == "a decision":
            resolve(store, ids[1], ACCEPTED, "bob")
        else:
            late = CampaignLedger(store, "spring", claimant(), clock=time.time, claimant_id=its_attempt)
            late.commit(outcomes=[Outcome(ids[1], ACCEPTED, event_id=7, response="{}")])
        return "y\n"

    at_terminal(answer)
    said = ledger("resolve", *(ids if arrives == "a decision" else OF_SPRING), "--as", "not-sent")
    states = [(NOT_SENT,), (ACCEPTED,), (NOT_SENT,)]
    assert (said.status, rows("SELECT state FROM sms_request ORDER BY id")) == (1, states)
    assert f"Request {ids[1]} is not unknown: it is accepted\n" in said.err
    assert "Closed as not sent: 2 of 3 requests, 2 messages\n" in said.err
    assert said.err.endswith("  task t of DAG d, run r\n1 request could not be closed\n")


def test_only_unknown_requests_of_the_campaign_are_closed(ledger, sent, states):
    """Known outcomes, requests under way and other campaigns stay as they are; a lapsed claim is closed."""
    sent(people(1), UNKNOWN)
    sent(people(1, 10))
    for place in (20, 30):
        sent(people(1, place), None)
    sent(people(1, 40), None, at=time.time() - 5000)
    sent(people(1, 50), UNKNOWN, campaign="autumn")
    said = ledger("resolve", *OF_SPRING, "--as", "not-sent", "--yes")
    assert (said.status, states()) == (0, {NOT_SENT: 2, ACCEPTED: 1, "claimed": 2})
    assert states("autumn") == {UNKNOWN: 1}
    assert "2 messages that may still be under way cannot be closed yet" in said.err


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_an_interrupted_command_has_closed_a_part(ledger, store, sent, states):
    """If the ledger fails in the middle, the last line counts what was committed; a second run closes the rest."""
    ids = [sent(people(1, place), UNKNOWN) for place in range(5)]
    with store.write(1) as connection:
        fails = f"WHEN NEW.id = {ids[3]} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        connection.execute(text(f"CREATE TRIGGER full BEFORE UPDATE ON sms_request {fails}"))
    command = ("resolve", *OF_SPRING, "--as", "accepted", "--yes")
    said = ledger(*command)
    assert (said.status, states()) == (1, {ACCEPTED: 3, UNKNOWN: 2})
    told, error = said.err.splitlines()[-2:]
    assert (told, "the disk is full" in error) == ("Closed as accepted: 3 of 5 requests, 3 messages", True)
    with store.write(1) as connection:
        connection.execute(text("DROP TRIGGER full"))
    assert (ledger(*command).status, states()) == (0, {ACCEPTED: 5})
    said = ledger(*command[:-1])
    assert (said.status, said.err) == (0, "Campaign spring has no unknown request\n")
