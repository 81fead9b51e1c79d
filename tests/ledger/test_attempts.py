from __future__ import annotations

import json
from contextlib import closing

import pytest
from sqlalchemy import text
from support.sending import accept, between_lookup_and_claim, claim, claimant, close, counted, people
from support.told import tell

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.attempts import has_trace, note_progress, register
from airflow_provider_sms.ledger.backend import campaign_lock
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import UNKNOWN
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.requests import named_requests


def test_a_trace_is_one_of_the_same_task_instance(enter, store):
    """Any try of the task instance leaves a trace; other tasks, runs and map indexes leave none of it."""
    enter(1)
    assert has_trace(store, claimant(2))
    for other in ({"task_id": "x"}, {"run_id": "x"}, {"dag_id": "x"}, {"map_index": 3}):
        assert not has_trace(store, claimant(2, **other))


def test_an_attempt_is_made_by_all_its_processes_so_far(enter):
    """A try that goes on after a wait tells what its earlier process sent from what other tries and tasks did."""
    messages = people(4)
    before = enter(2)
    accept(before, messages[:1])
    accept(enter(1), messages[1:2])
    accept(enter(2, run_id="other"), messages[2:3])
    goes_on = enter(2)
    accept(goes_on, messages[3:])
    mine = [goes_on.holders([each.key])[each.key].mine for each in messages]
    assert mine == [True, False, False, True]
    assert [before.holders([each.key])[each.key].mine for each in (messages[0], messages[3])] == [True, False]


def test_what_an_earlier_process_sends_beside_its_successor_counts_as_sent_by_the_attempt(sender, enter):
    """Airflow may run two processes of a try at once: what is unknown stays unknown, and nobody is texted twice."""
    before = enter(2)
    close(before, claim(before, people(2)))
    lost = claim(before, people(1, 2))
    close(before, lost, UNKNOWN)
    goes_on = sender(between_lookup_and_claim(enter(2), lambda: close(before, claim(before, people(3, 3)))))
    goes_on.run([people(20)])
    assert counted(goes_on) == {"accepted": 19, "unknown": 1}
    close(before, lost)
    goes_on.table.count(goes_on.ledger)
    assert counted(goes_on) == {"accepted": 20}


# What an attempt tells of itself


@pytest.fixture
def notes(store):
    """Give the notes of each try, by its claimant."""

    def notes():
        query = "SELECT a.*, c.name FROM sms_attempt a JOIN sms_campaign c ON c.id = a.campaign_id"
        with store.read() as connection:
            return {row["id"]: row for row in connection.execute(text(query)).mappings()}

    return notes


def test_a_note_is_of_an_attempt(store, notes):
    """A row for each claimant, under its campaign, which is made where it is new."""
    attempts = [register(store, claimant(number)) for number in (1, 2)]
    before = store.clock()
    for who, campaign in zip(attempts, ("spring", "autumn"), strict=True):
        note_progress(store, campaign, who, "checking", conn_id="sms_default")
    found = [notes()[who] for who in attempts]
    assert [(each["name"], each["state"], each["conn_id"]) for each in found] == [
        ("spring", "checking", "sms_default"),
        ("autumn", "checking", "sms_default"),
    ]
    assert all(before <= each["updated_at"] <= store.clock() for each in found)


def test_what_is_not_given_stays(store, notes):
    """A later note changes what it says, be it zero, and nothing else; what was never said is null."""
    who = register(store, claimant())
    note_progress(store, "c", who, "checking", conn_id="mine", total=10, invalid=2, done=3, plan={"to_send": 10})
    first = dict(notes()[who])
    note_progress(store, "c", who, "sending", done=0, rate=2.5, figures={"accepted": 4})
    note = dict(notes()[who])
    assert note.pop("updated_at") >= first.pop("updated_at")
    assert note == {**first, "state": "sending", "done": 0, "rate": 2.5, "figures": '{"accepted": 4}'}
    assert (json.loads(note["plan"]), note["total"], note["not_sent"]) == ({"to_send": 10}, 10, None)


def test_a_late_note_of_another_try_changes_nothing(store, notes):
    """What a process that hung says of itself is not said of those who came after it."""
    dead, living = register(store, claimant(1)), register(store, claimant(1))
    note_progress(store, "c", dead, "sending", done=1)
    note_progress(store, "c", living, "ended", done=9)
    note_progress(store, "c", dead, "sending", done=2)
    assert (notes()[living]["state"], notes()[living]["done"], notes()[dead]["done"]) == ("ended", 9, 2)


def test_a_note_of_nobody_is_an_error_of_the_ledger(store, notes):
    """Nothing is noted of a try that is not there."""
    with pytest.raises(LedgerError):
        note_progress(store, "c", 12345, "checking")
    assert notes() == {}


@pytest.fixture
def two_stores(postgres_url):
    """Open a ledger on a server twice; in a file there is one writer at a time, whatever it writes."""
    with closing(open_postgres(postgres_url)) as one, closing(open_postgres(postgres_url)) as other:
        yield one, other


def test_a_note_and_a_claim_wait_for_each_other_neither_way(two_stores):
    """They share the campaign's lock: an attempt tells how it goes while a claim is being made, and the reverse."""
    store, other = two_stores
    ledger = CampaignLedger(store, "c", claimant())
    note_progress(store, "c", ledger._claimant_id, "checking")
    with other.write(campaign_lock("c"), shared=True):
        note_progress(store, "c", ledger._claimant_id, "sending")
    with other.write(campaign_lock("c"), shared=True) as connection:
        assert connection.execute(text("UPDATE sms_attempt SET state = 's' RETURNING id")).scalars().all()
        assert claim(ledger, people(2)) is not None


def test_a_request_has_the_connection_of_its_attempt(store):
    """Other attempts may have sent with another one, or have reported none."""
    made = [tell(store, try_number=number, claims=[(1, "unknown")], first=number)[0] for number in (1, 2, 3)]
    for number, conn_id in ((1, "one"), (2, "two")):
        note_progress(store, "spring", number, "failed", conn_id=conn_id)
    assert [each.conn_id for each in named_requests(store, made)] == ["one", "two", None]
