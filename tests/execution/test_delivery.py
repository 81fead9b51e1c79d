from __future__ import annotations

from contextlib import closing

from sqlalchemy import text
from support.keys import message_keys
from support.sending import claimant

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Chunk
from airflow_provider_sms.ledger.sqlite import open_sqlite


def test_claims_of_the_dead_are_written_down_as_unknown_by_the_next_try(send, people, ledger_path):
    """Whoever reads the ledger after a try finds no claim that nobody will ever record an outcome of."""
    dead = [str(27_820_000_000 + n) for n in range(3)]
    with closing(open_sqlite(ledger_path)) as store:
        ledger = CampaignLedger(store, "spring", claimant())
        keys = message_keys(dead, [f"Hi Name{n}" for n in range(3)])
        ledger.commit(chunks=[Chunk(keys, dead)], claim_seconds=-1.0)
        ran = send(people(5), campaign="spring")
        with store.read() as connection:
            states = connection.execute(text("SELECT state, submitted FROM sms_request ORDER BY id")).all()
    assert (ran.summary["unknown"], ran.summary["accepted"]) == (3, 2)
    assert [tuple(row) for row in states] == [("unknown", 3), ("accepted", 2)]
