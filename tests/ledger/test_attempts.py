from __future__ import annotations

import json

import pytest
from sqlalchemy import text
from support.sending import accept, claimant, people
from support.told import tell

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.attempts import has_trace, note_progress, register
from airflow_provider_sms.ledger.requests import named_requests


def test_a_trace_is_one_of_the_same_task_instance(enter, store):
    """Any try of the task instance leaves a trace; other tasks, runs and map indexes leave none of it."""
    enter(1)
    assert has_trace(store, claimant(2))
    for other in ({"task_id": "x"}, {"run_id": "x"}, {"dag_id": "x"}, {"map_index": 3}):
        assert not has_trace(store, claimant(2, **other))


def test_an_attempt_is_made_by_all_its_processes_so_far(enter):
    """A try that goes on after a wait tells what its earlier process sent from what other tries and tasks did."""
    messages = people(5)
    before = enter(2)
    accept(before, messages[:1])
    accept(enter(1), messages[1:2])
    accept(enter(2, run_id="other"), messages[2:3])
    accept(enter(2, map_index=1), messages[4:])
    goes_on = enter(2)
    accept(goes_on, messages[3:4])
    mine = [goes_on.holders([each.key])[each.key].mine for each in messages]
    assert mine == [True, False, False, True, False]
    assert [before.holders([each.key])[each.key].mine for each in (messages[0], messages[3])] == [True, False]


# What an attempt tells of itself


@pytest.fixture
def notes(store):
    """Give the notes of each try, by its claimant."""

    def notes():
        query = "SELECT a.*, c.name FROM sms_attempt a JOIN sms_campaign c ON c.id = a.campaign_id"
        with store.read() as connection:
            return {row["id"]: row for row in connection.execute(text(query)).mappings()}

    return notes


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
