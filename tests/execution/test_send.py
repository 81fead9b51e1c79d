from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import text
from support.airflow import run_task
from support.keys import message_keys, request_of
from support.sending import claimant

from airflow_provider_sms.hooks import ledger as opening
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, Outcome
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator


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


@pytest.mark.slow
def test_a_task_that_waited_in_vain_is_tried_again_and_then_fails_for_good(send, people, met):
    """Its first attempt may pass by itself; the next one takes the request for unknown, which no retry makes known."""
    ran = send(people(5), campaign="spring", retries=5, on_retry_callback=lambda _: met.clear())
    assert (ran.state, ran.tries, ran.summary["unknown"], ran.summary["already_sent"]) == ("failed", 2, 3, 2)
    assert "request 1 may have been sent: claimed by another process that has recorded no outcome" in ran.log
    lost = "3 messages in the ledger's request 1 may have been sent: the service's response was lost, or the"
    assert lost in ran.log


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


@pytest.mark.parametrize("kind", [BulkSmsOperator, GroupSmsOperator])
def test_the_log_says_what_the_default_campaign_means(sms_default, ledger_path, kind):
    """And nothing of a campaign that has a name."""
    people = {"source": [{"destination": "27820000001"}]} if kind is BulkSmsOperator else {"groups": "staff"}
    ran = run_task(lambda: kind(task_id="send", message="Hi", **people))
    assert f"/send/{ran.run_id} (one per DAG run: name it to text each person once, ever), remembered in" in ran.log
    ran = run_task(lambda: kind(task_id="send", message="Hi", campaign="reminders", **people))
    assert "Campaign reminders, remembered in" in ran.log
