from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import text
from support.keys import message_keys, request_of
from support.sending import claimant

from airflow_provider_sms.hooks import ledger as opening
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, Outcome
from airflow_provider_sms.ledger.sqlite import open_sqlite


def test_claims_of_the_dead_are_written_down_as_unknown_by_the_next_try(send, people, ledger_path, monkeypatch):
    """Whoever reads the ledger after a try finds no claim that nobody will ever record an outcome of."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0")
    dead = [str(27_820_000_000 + n) for n in range(3)]
    with closing(open_sqlite(ledger_path)) as store:
        ledger = CampaignLedger(store, "spring", claimant())
        keys = message_keys(dead, [f"Hi Name{n}" for n in range(3)])
        ledger.commit(chunks=[request_of(keys, dead)], claim_seconds=-1.0)
        ran = send(people(5), campaign="spring")
        with store.read() as connection:
            states = connection.execute(text("SELECT state, submitted FROM sms_request ORDER BY id")).all()
    assert (ran.summary["unknown"], ran.summary["accepted"]) == (3, 2)
    assert [tuple(row) for row in states] == [("unknown", 3), ("accepted", 2)]


@pytest.fixture
def met(ledger_path, monkeypatch):
    """Let another task claim three people's messages for a moment when the send begins; once.

    An outcome is expected as long as its claim is in the list.
    """
    claimed, has_begun = [], []

    def claim():
        if not has_begun:
            has_begun.append(True)
            others = [str(27_820_000_000 + n) for n in range(3)]
            with closing(open_sqlite(ledger_path)) as store:
                ledger = CampaignLedger(store, "spring", claimant(host="worker-2"))
                keys = message_keys(others, [f"Hi Name{n}" for n in range(3)])
                claimed.extend(ledger.commit(chunks=[request_of(keys, others)], claim_seconds=0.3))
        return 600.0 if claimed else 0.0

    monkeypatch.setattr(opening, "configured_ledger_patience", claim)
    return claimed


def test_an_outcome_that_comes_in_time_is_found(send, people, met, ledger_path, monkeypatch):
    """The task ends well, and nobody is texted twice."""
    lapse = CampaignLedger.lapse

    def lapse_and_record(ledger):
        lapse(ledger)
        if met and met[0].request_id is not None:
            with closing(open_sqlite(ledger_path)) as store:
                other = CampaignLedger(store, "spring", claimant(host="worker-2"), claimant_id=1)
                other.finish([Outcome(met[0].request_id, ACCEPTED, event_id=77, messages=3)])

    monkeypatch.setattr(CampaignLedger, "lapse", lapse_and_record)
    ran = send(people(5), campaign="spring")
    assert (ran.state, ran.summary["unknown"], ran.summary["already_sent"]) == ("success", 0, 3)


def test_a_killed_process_leaves_messages_and_not_rows(send, ledger_path):
    """Of claims that have lapsed, the error counts the messages, however many rows repeat them."""
    numbers = [str(27_820_000_000 + n) for n in range(4)]
    with closing(open_sqlite(ledger_path)) as store:
        long_ago = CampaignLedger(store, "spring", claimant(), clock=lambda: 1_000_000.0)
        long_ago.commit(chunks=[request_of(message_keys(numbers, ["Hi"] * 4), numbers)], claim_seconds=1.0)
    ran = send([{"destination": each} for each in [*numbers, *numbers[:2]]], "Hi", campaign="spring")
    assert (ran.state, ran.summary["unknown"]) == ("failed", 4)
    lost = "4 messages in the ledger's request 1 may have been sent: the service's response was lost, or the"
    assert lost in ran.log
