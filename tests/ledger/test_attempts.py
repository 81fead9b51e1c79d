from __future__ import annotations

import pytest
from support.checked import check_into
from support.sending import claimant, people

from airflow_provider_sms.ledger.attempts import has_trace, register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.reporting.summary import replay


def test_a_trace_is_one_of_the_same_task_instance(enter, store):
    """Any try of the task instance leaves a trace; other tasks, runs and map indexes leave none of it."""
    enter(1)
    assert has_trace(store, claimant(2))
    for other in ({"task_id": "x"}, {"run_id": "x"}, {"dag_id": "x"}, {"map_index": 3}):
        assert not has_trace(store, claimant(2, **other))


@pytest.fixture
def send():
    def send(ledger, them, state=ACCEPTED, **fields):
        chunk = Chunk([m.key for m in them], [m.destination for m in them])
        (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
        ledger.commit(outcomes=[Outcome(claimed.request_id, state, **fields)])
        return claimed.request_id

    return send


def whose(ledger, message):
    holder = ledger.holders([message.key])[message.key]
    return holder.mine, holder.of_earlier_leg


def test_what_a_try_sent_before_it_waited_is_of_an_earlier_leg(enter, send):
    """A try that goes on tells what its earlier part sent from its own claims, and from those of other tries."""
    messages = people(4)
    send(enter(1), messages[:1])
    send(enter(2), messages[1:2])
    send(enter(2, run_id="other"), messages[2:3])
    resumed = enter(2, resumed=True)
    send(resumed, messages[3:])
    found = [whose(resumed, message) for message in messages]
    assert found == [(False, False), (False, True), (False, False), (True, False)]


def test_only_a_try_that_goes_on_has_an_earlier_leg(enter, send):
    """A try that runs twice at once does not take the other one's requests for its own."""
    send(enter(2), people(1))
    again = enter(2)
    assert whose(again, people(1)[0]) == (False, False)
    assert list(again.requests_of_earlier_legs()) == []


def test_what_is_sent_later_is_of_no_earlier_part(enter, send, store, clock):
    """A part that lives on beside its successor does not take what that one sends for what it sent before."""
    lives_on = register(store, claimant(2))
    send(enter(2, resumed=True), people(1))
    seen = CampaignLedger(store, "c", claimant(2), clock=clock, claimant_id=lives_on, resumed=True)
    assert whose(seen, people(1)[0]) == (False, False)
    assert whose(enter(2, resumed=True), people(1)[0]) == (False, True)


def test_what_an_earlier_part_sends_beside_its_successor_is_no_repeat(sender, enter, send):
    """Airflow may run two parts of a try at once: what is unknown stays unknown, and what was sent counts as sent."""
    before = enter(2)
    sent, lost = send(before, people(2)), send(before, people(1, 2), UNKNOWN)
    resumed = enter(2, resumed=True)
    part = sender(resumed)
    replay(resumed, part.counts)
    table = check_into(part.counts, resumed, people(20))
    late = send(before, people(3, 3)), send(before, people(4, 6), UNKNOWN)
    part.run([table])
    tally = part.counts
    assert sent < lost < min(late)
    assert (tally.accepted, tally.already_sent, tally.unknown, tally.duplicate) == (2 + 10, 3, 1 + 4, 0)
    assert tally.settled == 20


def test_a_late_answer_to_an_earlier_part_is_no_repeat(sender, enter, send):
    """What was unknown when the try went on may turn out as sent before its row is met."""
    before = enter(2)
    lost = send(before, people(3), UNKNOWN)
    resumed = enter(2, resumed=True)
    part = sender(resumed)
    replay(resumed, part.counts)
    before.commit(outcomes=[Outcome(lost, ACCEPTED)])
    part.run([people(10)])
    assert (part.counts.accepted, part.counts.already_sent, part.counts.duplicate, part.counts.settled) == (7, 3, 0, 10)
