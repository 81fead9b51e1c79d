from __future__ import annotations

import getpass
import time

import pytest
from sqlalchemy import text
from support.keys import request_of
from support.sending import claimant, people

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome

OUTAGE = 677
BAD_GATEWAY, TIMEOUT = "bulkmessages: HTTP 502", "bulkmessages: no answer within 30 s"
LONG_AGO = time.time() - 5000


@pytest.fixture
def states(store):
    """Count the requests by state and campaign."""

    def states(campaign="spring"):
        query = "SELECT state, count(*) FROM sms_request JOIN sms_campaign ON sms_campaign.id = campaign_id "
        with store.read() as connection:
            return {state: count for state, count in connection.execute(  # noqa: C416  # rows are no pairs to dict()
                text(f"{query} WHERE name = :name GROUP BY state"), {"name": campaign}
            )}  # fmt: skip

    return states


@pytest.fixture
def outage(store):
    """Leave requests unknown, of one message each; for each reason so many."""

    def outage(*reasons, campaign="spring", at=None, first=0, state=UNKNOWN):
        clock = time.time if at is None else lambda: at
        ledger = CampaignLedger(store, campaign, claimant(), clock=clock)
        everybody = people(len(reasons), first)
        chunks = [request_of([person.key], [person.destination]) for person in everybody]
        ids = [claim.request_id for claim in ledger.commit(chunks=chunks, claim_seconds=60.0)]
        if state is not None:
            outcomes = [Outcome(each, state, reason=why) for each, why in zip(ids, reasons, strict=True)]
            ledger.commit(outcomes=outcomes)
        return ids

    return outage


@pytest.mark.slow
def test_an_outage_is_closed_at_once(ledger, store, outage, holders, states, at_terminal):
    """The command first says how many, when and why; then each closed request records the person."""
    outage(*[BAD_GATEWAY] * (OUTAGE - 7), *[TIMEOUT] * 7)
    at_terminal("y\n")
    said = ledger("resolve", "--campaign", "spring", "--as", "not-sent")
    assert said.status == 0
    assert "677 unknown requests of spring with 677 messages, claimed from 20" in said.err
    assert f"  670 requests with 670 messages: {BAD_GATEWAY}\n  7 requests with 7 messages: {TIMEOUT}\n" in said.err
    assert "Not sent frees 677 messages for the next attempt" in said.err
    assert "Close 677 requests as not sent? [y/N]" in said.err
    assert "Closed as not sent: 677 of 677 requests, 677 messages\n" in said.err
    assert said.err.endswith("so that it runs again:\n  task t of DAG d, run r\n")
    assert (states(), holders(people(OUTAGE))) == ({NOT_SENT: OUTAGE}, set())
    with store.read() as connection:
        decided = connection.execute(
            text("SELECT id, decision, decided_by FROM sms_request WHERE decided_at > 0")
        ).all()
    assert len(set(decided)) == OUTAGE
    assert {tuple(row[1:]) for row in decided} == {(NOT_SENT, getpass.getuser())}


def test_only_unknown_requests_of_the_campaign_are_closed(ledger, outage, states):
    """Known outcomes, requests under way and other campaigns stay as they are; a lapsed claim is closed."""
    outage(BAD_GATEWAY)
    outage(None, first=10, state=ACCEPTED)
    outage(None, None, first=20, state=None)
    outage(None, first=30, state=None, at=LONG_AGO)
    outage(BAD_GATEWAY, campaign="autumn")
    said = ledger("resolve", "--campaign", "spring", "--as", "not-sent", "--yes")
    assert (said.status, states(), states("autumn")) == (
        0,
        {NOT_SENT: 2, ACCEPTED: 1, "claimed": 2},
        {UNKNOWN: 1},
    )
    assert "messages that may still be under way cannot be closed yet" in said.err
    assert "1 request with 1 message: no outcome was recorded before the deadline" in said.err


def test_an_outcome_that_arrives_during_the_question_stays(ledger, store, outage, states, at_terminal):
    """The service's response outranks the person's decision, and the last line says that there was one."""
    ids = outage(BAD_GATEWAY, BAD_GATEWAY, BAD_GATEWAY)
    with store.read() as connection:
        claimed_it = connection.execute(text("SELECT min(attempt_id) FROM sms_request")).scalar_one()
    late = CampaignLedger(store, "spring", claimant(), clock=time.time, claimant_id=claimed_it)
    answered = Outcome(ids[1], ACCEPTED, event_id=7, response="{}")
    at_terminal(lambda: (late.commit(outcomes=[answered]), "y\n")[1])
    said = ledger("resolve", "--campaign", "spring", "--as", "not-sent")
    assert (said.status, states()) == (1, {NOT_SENT: 2, ACCEPTED: 1})
    assert "Closed as not sent: 2 of 3 requests, 2 messages\n" in said.err
    assert said.err.endswith("1 request could not be closed\n")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_an_interrupted_command_has_closed_a_part(ledger, store, outage, states):
    """If the ledger fails in the middle, the last line counts what was committed; a second run closes the rest."""
    ids = outage(*[BAD_GATEWAY] * 5)
    with store.write(1) as connection:
        fails = f"WHEN NEW.id = {ids[3]} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        connection.execute(text(f"CREATE TRIGGER full BEFORE UPDATE ON sms_request {fails}"))
    command = ("resolve", "--campaign", "spring", "--as", "accepted", "--yes")
    said = ledger(*command)
    assert (said.status, states()) == (1, {ACCEPTED: 3, UNKNOWN: 2})
    told, error = said.err.splitlines()[-2:]
    assert told == "Closed as accepted: 3 of 5 requests, 3 messages"
    assert "the disk is full" in error
    with store.write(1) as connection:
        connection.execute(text("DROP TRIGGER full"))
    assert ledger(*command).status == 0
    assert states() == {ACCEPTED: 5}


def test_without_anything_to_close_nothing_is_asked(ledger, outage):
    """A second time there is nothing left: that is no failure."""
    outage(None, state=ACCEPTED)
    said = ledger("resolve", "--campaign", "spring", "--as", "accepted")
    assert (said.status, said.err) == (0, "Campaign spring has no unknown request\n")
