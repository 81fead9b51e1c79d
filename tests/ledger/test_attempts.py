from __future__ import annotations

import pytest
from support.sending import between_lookup_and_claim, chunk_of, claimant, counted, people

from airflow_provider_sms.ledger.attempts import has_trace
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Outcome


def test_a_trace_is_one_of_the_same_task_instance(enter, store):
    """Any try of the task instance leaves a trace; other tasks, runs and map indexes leave none of it."""
    enter(1)
    assert has_trace(store, claimant(2))
    for other in ({"task_id": "x"}, {"run_id": "x"}, {"dag_id": "x"}, {"map_index": 3}):
        assert not has_trace(store, claimant(2, **other))


@pytest.fixture
def send():
    def send(ledger, them, state=ACCEPTED, **fields):
        (claimed,) = ledger.commit(chunks=[chunk_of(them)], claim_seconds=60.0)
        ledger.commit(outcomes=[Outcome(claimed.request_id, state, **fields)])
        return claimed.request_id

    return send


def test_an_attempt_is_made_by_all_its_processes_so_far(enter, send):
    """A try that goes on after a wait tells what its earlier process sent from what other tries and tasks did."""
    messages = people(4)
    before = enter(2)
    send(before, messages[:1])
    send(enter(1), messages[1:2])
    send(enter(2, run_id="other"), messages[2:3])
    goes_on = enter(2)
    send(goes_on, messages[3:])
    mine = [goes_on.holders([each.key])[each.key].mine for each in messages]
    assert mine == [True, False, False, True]
    assert [before.holders([each.key])[each.key].mine for each in (messages[0], messages[3])] == [True, False]


def test_what_an_earlier_process_sends_beside_its_successor_counts_as_sent_by_the_attempt(sender, enter, send):
    """Airflow may run two processes of a try at once: what is unknown stays unknown, and nobody is texted twice."""
    before = enter(2)
    send(before, people(2))
    lost = send(before, people(1, 2), UNKNOWN)
    goes_on = sender(between_lookup_and_claim(enter(2), lambda: send(before, people(3, 3))))
    goes_on.run([people(20)])
    assert counted(goes_on) == {"accepted": 19, "unknown": 1}
    before.commit(outcomes=[Outcome(lost, ACCEPTED)])
    goes_on.table.count(goes_on.ledger)
    assert counted(goes_on) == {"accepted": 20}
