from __future__ import annotations

import pytest
from sqlalchemy import inspect, text
from support.sending import people

from airflow_provider_sms.exceptions import LedgerVersionError
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION

NOTES = (
    "SELECT c.name, l.try_number, p.state, p.updated_at, p.conn_id, p.total, p.done, p.figures, p.plan "
    "FROM sms_progress p JOIN sms_campaign c ON c.id = p.campaign_id JOIN sms_claimant l ON l.id = p.claimant_id "
    "ORDER BY c.name, l.try_number"
)


@pytest.fixture
def of_version_3(open_store, enter, clock):
    """Make a ledger as version 3 left it: two campaigns, one of them of two tries, and a try that made no request."""
    store = open_store()

    def send(try_number, campaign, start, at, outcome, until):
        clock.now = at
        ledger = enter(try_number, campaign=campaign, into=store)
        messages = people(2, start)
        chunk = Chunk([m.key for m in messages], [m.destination for m in messages])
        (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
        clock.now = until
        if outcome is not None:
            ledger.commit(outcomes=[Outcome(claimed.request_id, outcome)])

    send(1, "autumn", 0, 100.0, ACCEPTED, 160.0)
    send(2, "autumn", 10, 200.0, None, 260.0)
    send(1, "spring", 0, 300.0, UNKNOWN, 330.0)
    enter(3, campaign="spring", into=store)
    with store.write(1) as connection:
        for statement in (
            "DROP TABLE sms_progress",
            "DROP TABLE sms_balance",
            "DROP TABLE sms_boot_clock",
            "DROP INDEX sms_request_campaign_event",
            "UPDATE sms_ledger_version SET version = 3",
        ):
            connection.execute(text(statement))


def rows(store, query):
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_tries_from_before_there_were_notes_are_noted(of_version_3, open_store):
    """Each try that made requests, with the moment at which it did something last; all else is not known."""
    store = open_store()
    nothing = (None,) * 5
    expected = [
        ("autumn", 1, "earlier", 160.0, *nothing),
        ("autumn", 2, "earlier", 200.0, *nothing),
        ("spring", 1, "earlier", 330.0, *nothing),
    ]
    assert rows(store, NOTES) == expected
    assert rows(store, "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]
    assert rows(open_store(), NOTES) == expected


def test_what_was_sent_before_stays_sent(of_version_3, open_store, enter):
    """A ledger that was brought up to date knows everybody whom it knew."""
    ledger = enter(4, campaign="autumn", into=open_store())
    keys = [m.key for m in (*people(2), *people(2, 10), *people(2, 20))]
    assert len(ledger.holders(keys)) == 4


def test_an_older_ledger_gets_the_index_of_event_ids(open_store):
    """Looking up an event id reads no whole campaign, however old the ledger is."""
    with open_store().write(1) as connection:
        for statement in (
            "DROP TABLE sms_boot_clock",
            "DROP INDEX sms_request_campaign_event",
            "UPDATE sms_ledger_version SET version = 4",
        ):
            connection.execute(text(statement))
    with open_store().read() as connection:
        found = {index["name"]: index["column_names"] for index in inspect(connection).get_indexes("sms_request")}
    assert found["sms_request_campaign_event"] == ["campaign_id", "event_id"]


def test_a_newer_ledger_is_left_as_it_is(of_version_3, open_store):
    """Nothing is made in it, and nothing noted."""
    store = open_store()
    with store.write(1) as connection:
        connection.execute(text("DELETE FROM sms_progress"))
        connection.execute(text(f"UPDATE sms_ledger_version SET version = {SCHEMA_VERSION + 1}"))
    with pytest.raises(LedgerVersionError):
        open_store()
    assert rows(store, NOTES) == []
