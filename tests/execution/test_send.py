from __future__ import annotations

from contextlib import closing

from sqlalchemy import text
from support.keys import message_keys, request_of
from support.sending import claimant
from support.task_fixtures import numbers

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.sqlite import open_sqlite


def test_claims_of_the_dead_are_written_down_as_unknown_by_the_next_try(send, ledger_path, monkeypatch):
    """Nobody will ever record their outcome; the error counts the messages, however many rows repeat them."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0")
    dead = numbers(3)
    with closing(open_sqlite(ledger_path)) as store:
        ledger = CampaignLedger(store, "spring", claimant())
        ledger.commit(chunks=[request_of(message_keys(dead, ["Hi"] * 3), dead)], claim_seconds=-1.0)
        ran = send([{"destination": each} for each in [*numbers(5), *dead]], "Hi", campaign="spring")
        with store.read() as connection:
            states = connection.execute(text("SELECT state, submitted FROM sms_request ORDER BY id")).all()
    assert (ran.state, ran.summary["unknown"], ran.summary["accepted"]) == ("failed", 3, 2)
    assert [tuple(row) for row in states] == [("unknown", 3), ("accepted", 2)]
    lost = "3 messages in the ledger's request 1 may have been sent: the service's response was lost, or the"
    assert lost in ran.log
