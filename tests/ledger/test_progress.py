from __future__ import annotations

import json
from contextlib import closing

import pytest
from sqlalchemy import text
from support.keys import request_of
from support.sending import claimant, people
from support.told import tell

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.backend import campaign_lock
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.requests import named_requests


@pytest.fixture
def notes(store):
    """Give the notes of each try, by its claimant."""

    def notes():
        query = "SELECT a.*, c.name FROM sms_attempt a JOIN sms_campaign c ON c.id = a.campaign_id"
        with store.read() as connection:
            return {row["id"]: row for row in connection.execute(text(query)).mappings()}

    return notes


def test_a_note_is_of_a_try(store, notes):
    """A row for each claimant, under its campaign, which is made where it is new."""
    tries = [register(store, claimant(number)) for number in (1, 2)]
    before = store.clock()
    for who, campaign in zip(tries, ("spring", "autumn"), strict=True):
        note_progress(store, campaign, who, "checking", conn_id="sms_default")
    found = notes()
    assert [found[who]["name"] for who in tries] == ["spring", "autumn"]
    assert [found[who]["state"] for who in tries] == ["checking", "checking"]
    assert [found[who]["conn_id"] for who in tries] == ["sms_default"] * 2
    assert all(before <= found[who]["updated_at"] <= store.clock() for who in tries)


def test_what_is_not_given_stays(store, notes):
    """A later note of the same try changes what it says, and nothing else; what was never said is null."""
    who = register(store, claimant())
    note_progress(store, "c", who, "checking", conn_id="mine", total=10, invalid=2, plan={"to_send": 10})
    first = dict(notes()[who])
    note_progress(store, "c", who, "sending", done=4, rate=2.5, figures={"accepted": 4})
    note = dict(notes()[who])
    assert note.pop("updated_at") >= first.pop("updated_at")
    assert note == {**first, "state": "sending", "done": 4, "rate": 2.5, "figures": '{"accepted": 4}'}
    assert (json.loads(note["plan"]), note["total"], note["not_sent"]) == ({"to_send": 10}, 10, None)


def test_zero_is_a_count(store, notes):
    """Nobody done yet is not the same as nothing said."""
    who = register(store, claimant())
    note_progress(store, "c", who, "sending", total=5, done=3)
    note_progress(store, "c", who, "sending", done=0, not_sent=0)
    assert (notes()[who]["done"], notes()[who]["not_sent"]) == (0, 0)


def test_a_late_note_of_another_try_changes_nothing(store, notes):
    """What a process that hung says of itself is not said of those who came after it."""
    dead, living = register(store, claimant(1)), register(store, claimant(1))
    note_progress(store, "c", dead, "sending", done=1)
    note_progress(store, "c", living, "ended", done=9)
    note_progress(store, "c", dead, "sending", done=2)
    assert (notes()[living]["state"], notes()[living]["done"], notes()[dead]["done"]) == ("ended", 9, 2)


@pytest.fixture
def two_stores(postgres_url):
    """Open a ledger on a server twice; in a file there is one writer at a time, whatever it writes."""
    with closing(open_postgres(postgres_url)) as one, closing(open_postgres(postgres_url)) as other:
        yield one, other


def test_a_note_waits_for_no_claim(two_stores):
    """While a claim is being made, a try of the same campaign tells how it goes: they share the lock."""
    store, other = two_stores
    who = register(store, claimant())
    note_progress(store, "c", who, "checking")
    with other.write(campaign_lock("c"), shared=True):
        note_progress(store, "c", who, "sending")
    with store.read() as connection:
        assert connection.execute(text("SELECT state FROM sms_attempt")).scalars().all() == ["sending"]


def test_a_claim_waits_for_no_note(two_stores):
    """A note that is being written keeps nobody from being claimed."""
    store, other = two_stores
    ledger = CampaignLedger(store, "c", claimant())
    messages = people(2)
    with other.write(campaign_lock("c"), shared=True) as connection:
        connection.execute(text("UPDATE sms_attempt SET state = 's'"))
        chunk = request_of([m.key for m in messages], [m.destination for m in messages])
        (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
    assert len(claimed.won) == 2


def test_a_note_of_nobody_is_an_error_of_the_ledger(store, notes):
    """Nothing is noted of a try that is not there."""
    with pytest.raises(LedgerError):
        note_progress(store, "c", 12345, "checking")
    assert notes() == {}


def test_a_request_has_the_connection_of_its_attempt(store):
    """Other attempts may have sent with another one, or have reported none."""
    made = [tell(store, try_number=number, claims=[(1, "unknown")], first=number)[0] for number in (1, 2, 3)]
    for number, conn_id in ((1, "one"), (2, "two")):
        note_progress(store, "spring", number, "failed", conn_id=conn_id)
    assert [each.conn_id for each in named_requests(store, made)] == ["one", "two", None]
