"""Messages that requests of other attempts hold: waited for, within a bound, until an outcome is recorded."""

from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.pending import PendingMessages

COUNT = 10
DEADLINE, BOUND = 45.0, 90.0
"""Seconds after the claim."""
OTHER_TASK, COPY = {"task_id": "other"}, {"pid": 2}


@pytest.fixture
def claimed(enter, clock):
    """Let another process claim all messages; return its ledger, the request and when it was claimed."""

    def claimed(try_number=1, **who):
        ledger = enter(try_number, **who)
        messages = people(COUNT)
        chunk = Chunk([m.key for m in messages], [m.destination for m in messages])
        (claim,) = ledger.commit(chunks=[chunk], claim_seconds=DEADLINE)
        return ledger, claim.request_id, clock.now

    return claimed


def look(pending):
    """Let a sender look for messages to claim, and return how many are free."""
    chunk, _ = pending.next_chunk(COUNT)
    return len(chunk)


def pending_of(ledger, *, resend=False, adopts=lambda _: False):
    counts = SendCounts()
    return PendingMessages([people(COUNT)], ledger, counts, resend=lambda *_: resend, adopts=adopts), counts


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(("who", "own_try"), [(OTHER_TASK, 1), (COPY, 1), (OTHER_TASK, 3), ({"map_index": 4}, 1)])
def test_an_outcome_that_is_recorded_within_the_bound_counts(enter, clock, claimed, who, own_try, is_written):
    """A task that is cut off for a while does not fail others: past the deadline they wait, and find the outcome."""
    other, request_id, began = claimed(**who)
    ledger = enter(own_try)
    pending, counts = pending_of(ledger)
    for after in (0.0, DEADLINE, DEADLINE + 0.5, BOUND):
        clock.now = began + after
        if is_written:
            ledger.lapse()
        assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)
    other.finish([Outcome(request_id, ACCEPTED, event_id=1, messages=COUNT)])
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.already_sent, counts.unknown) == (COUNT, 0)


def test_what_is_given_back_within_the_bound_is_free(enter, clock, claimed):
    """The other process has not sent it, so that this one does."""
    other, request_id, began = claimed(**OTHER_TASK)
    pending, _ = pending_of(enter())
    clock.now = began + DEADLINE + 0.5
    assert look(pending) == 0
    other.finish([Outcome(request_id, NOT_SENT)])
    assert look(pending) == COUNT


@pytest.mark.parametrize("who", [OTHER_TASK, COPY])
def test_what_was_waited_for_in_vain_is_counted_apart(enter, clock, claimed, who):
    """The wait ends at the bound: the messages count as unknown, and the request is one that a later attempt meets."""
    _, request_id, began = claimed(**who)
    pending, counts = pending_of(enter())
    assert look(pending) == 0
    clock.now = began + BOUND + 0.5
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.unknown, counts.unrecorded, counts.unknown_requests) == (COUNT, {request_id: COUNT}, set())


def test_what_is_met_past_the_bound_is_unknown(enter, clock, claimed):
    """Nothing is waited for twice: a later attempt takes it for unknown at once."""
    _, request_id, began = claimed(**OTHER_TASK)
    clock.now = began + BOUND + 0.5
    pending, counts = pending_of(enter())
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.unknown, counts.unrecorded, counts.unknown_requests) == (COUNT, {}, {request_id})


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_the_bound_may_be_shorter_but_not_than_the_claim(enter, clock, claimed, seconds):
    """Until its deadline a request may be posted, whatever is configured."""
    _, request_id, began = claimed(**OTHER_TASK)
    ledger = enter()
    ledger.unrecorded_seconds = seconds
    pending, counts = pending_of(ledger)
    clock.now = began + DEADLINE
    assert (look(pending), counts.unknown) == (0, 0)
    clock.now = began + DEADLINE + 0.5
    assert (look(pending), counts.unrecorded) == (0, {request_id: COUNT})


@pytest.mark.parametrize("own", [True, False])
def test_requests_of_earlier_tries_are_waited_for_and_then_unknown(enter, clock, claimed, own):
    """Airflow has given its process up, which may live on a cut-off machine and record: until the bound, not later."""
    who = {} if own else OTHER_TASK
    _, request_id, began = claimed(1, **who)
    successor = enter(2, **who)
    pending, counts = pending_of(successor if own else enter())
    for after in (0.0, DEADLINE + 0.5, BOUND):
        clock.now = began + after
        assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)
    clock.now = began + BOUND + 0.5
    assert (look(pending), counts.unknown, counts.unknown_requests, counts.unrecorded) == (0, COUNT, {request_id}, {})


def test_what_an_earlier_try_records_from_a_machine_that_was_cut_off_counts(enter, clock, claimed):
    """The next try waits for it, and ends well."""
    earlier, request_id, began = claimed(1)
    pending, counts = pending_of(enter(2))
    clock.now = began + DEADLINE + 0.5
    assert (look(pending), pending.empty) == (0, False)
    earlier.finish([Outcome(request_id, ACCEPTED, event_id=1, messages=COUNT)])
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.already_sent, counts.unknown) == (COUNT, 0)


def test_an_attempt_that_is_replaced_during_the_wait_is_waited_for_as_long(enter, clock, claimed):
    """The request is unknown when the wait ends: a retry would find no more."""
    _, request_id, began = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    clock.now = began + DEADLINE + 0.5
    assert (look(pending), pending.empty) == (0, False)
    enter(2, **OTHER_TASK)
    assert (look(pending), pending.empty) == (0, False)
    clock.now = began + BOUND + 0.5
    assert (look(pending), counts.unknown_requests, counts.unrecorded) == (0, {request_id}, {})


def test_what_is_recorded_as_unknown_during_the_wait_is_unknown(enter, clock, claimed):
    """Its own process has said that it does not know: an outcome is recorded."""
    other, request_id, began = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    clock.now = began + DEADLINE + 0.5
    assert look(pending) == 0
    other.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    assert (look(pending), counts.unknown_requests, counts.unrecorded) == (0, {request_id}, {})


@pytest.mark.parametrize(("resumed", "own_try"), [(False, 1), (True, 2)])
def test_a_later_attempt_that_still_runs_is_waited_for(enter, clock, claimed, resumed, own_try):
    """A process that Airflow has replaced, or that goes on after a wait, meets one that lives."""
    _, _, began = claimed(2)
    pending, counts = pending_of(enter(own_try, resumed=resumed))
    clock.now = began + DEADLINE + 0.5
    assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)


def test_a_recorded_unknown_is_not_waited_for(enter, clock, claimed):
    """Its own process has said that it does not know."""
    other, request_id, _ = claimed(**OTHER_TASK)
    other.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    pending, counts = pending_of(enter())
    assert (look(pending), counts.unknown_requests, counts.unrecorded) == (0, {request_id}, {})


def test_a_person_who_decides_ends_the_wait(enter, clock, claimed, store):
    """A decision is an outcome."""
    _, request_id, began = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    clock.now = began + DEADLINE + 0.5
    assert look(pending) == 0
    store.clock = clock
    resolve(store, request_id, ACCEPTED, "ann")
    assert (look(pending), counts.already_sent) == (0, COUNT)


def test_what_is_sent_again_is_waited_for_first(enter, clock, claimed):
    """A cut costs no second text where the outcome is recorded in time."""
    _, _, began = claimed(**OTHER_TASK)
    pending, _ = pending_of(enter(), resend=True)
    clock.now = began + BOUND
    assert look(pending) == 0
    clock.now = began + BOUND + 0.5
    assert look(pending) == COUNT


def test_the_balance_decides_past_the_deadline(enter, clock, claimed):
    """It is asked before anybody waits, and what it leaves open is waited for."""
    _, request_id, began = claimed(**OTHER_TASK)
    undecided = []
    pending, counts = pending_of(enter(), adopts=lambda each: each not in undecided)
    clock.now = began + DEADLINE + 0.5
    assert look(pending) == 0
    messages = pending.take_adopted()[request_id]
    undecided.append(request_id)
    pending.reconcile(messages)
    assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)
    clock.now = began + BOUND + 0.5
    assert (look(pending), counts.unrecorded) == (0, {request_id: COUNT})


def test_a_send_that_ends_early_counts_what_others_hold_as_unrecorded(enter, clock, claimed):
    """Nothing is looked up any longer, and no outcome is known."""
    _, request_id, _ = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    assert look(pending) == 0
    pending.count_remaining(lambda: False)
    assert (counts.unknown, counts.unrecorded, pending.empty) == (COUNT, {request_id: COUNT}, True)


def test_the_log_says_once_what_is_waited_for(enter, clock, claimed, caplog):
    """Somebody who reads the log sees why the task does not end."""
    _, request_id, began = claimed(**OTHER_TASK)
    pending, _ = pending_of(enter())
    for after in (0.0, DEADLINE + 0.5, DEADLINE + 1.0):
        clock.now = began + after
        look(pending)
    said = [record.getMessage() for record in caplog.records if record.name.endswith(".pending")]
    assert [f"Request {request_id} of another attempt is past its deadline" in each for each in said] == [True]


def test_two_tasks_that_wait_for_each_other_both_end(enter, clock):
    """Each has claims of which it cannot record an outcome, and meets the other's: the bound ends both waits."""
    one, two = enter(task_id="one"), enter(task_id="two")
    for ledger, start in ((one, 0), (two, COUNT)):
        messages = people(COUNT, start)
        ledger.commit(
            chunks=[Chunk([m.key for m in messages], [m.destination for m in messages])], claim_seconds=DEADLINE
        )
    waits = []
    for ledger, start in ((one, COUNT), (two, 0)):
        counts = SendCounts()
        waits.append((PendingMessages([people(COUNT, start)], ledger, counts, resend=lambda *_: False), counts))
    for after, is_over in ((0.0, False), (BOUND, False), (0.5, True)):
        clock.now += after
        assert [(look(pending), pending.empty) for pending, _ in waits] == [(0, is_over)] * 2
    assert [counts.unrecorded for _, counts in waits] == [{2: COUNT}, {1: COUNT}]
