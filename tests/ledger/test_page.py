from __future__ import annotations

from sqlalchemy import text
from support.keys import request_of
from support.pages import ROOT, blocks
from support.sending import people

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Outcome


def test_the_pages_query_lists_whom_a_campaign_texted(store, enter):
    """Each message is there with its request's state and its task, and no other campaign's."""
    expected = []
    for n, state in enumerate((ACCEPTED, UNKNOWN)):
        for campaign in ("reminders", "offers"):
            ledger, (person,) = enter(campaign=campaign), people(1, n)
            (claim,) = ledger.commit(chunks=[request_of([person.key], [person.destination])], claim_seconds=60.0)
            ledger.commit(outcomes=[Outcome(claim.request_id, state, event_id=n + 7 if state == ACCEPTED else None)])
        expected.append((int(person.destination), state, 7 if state == ACCEPTED else None))
    (query,) = (block.code for block in blocks(ROOT / "docs" / "ledger.md", "sql") if "sms_superseded" in block.code)
    with store.read() as connection:
        rows = connection.execute(text(query)).all()
    assert sorted((row.destination, row.state, row.event_id) for row in rows) == expected
    assert {(row.dag_id, row.task_id) for row in rows} == {("d", "t")}
