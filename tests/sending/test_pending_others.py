"""Messages that requests of other attempts hold: waited for until the claim has an outcome or has lapsed."""

from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.transitions import PATIENCE_SECONDS
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.pending import PendingMessages

COUNT = 10
DEADLINE, BOUND = 45.0, PATIENCE_SECONDS
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


WHO = [OTHER_TASK, COPY, {"map_index": 4}, {"try_number": 2}]


@pytest.mark.parametrize("who", WHO)
def test_a_live_claim_is_waited_for(enter, clock, claimed, who):
    """Its process may still record an outcome, and then nobody is unknown."""
    other, request_id, began = claimed(**who)
    pending, counts = pending_of(enter())
    for after in (0.0, DEADLINE):
        clock.now = began + after
        assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)
    other.finish([Outcome(request_id, ACCEPTED, event_id=1, messages=COUNT)])
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.already_sent, counts.unknown) == (COUNT, 0)


def test_what_is_given_back_is_free(enter, claimed):
    """The other process has not sent it, so that this one does."""
    other, request_id, _ = claimed(**OTHER_TASK)
    pending, _ = pending_of(enter())
    assert look(pending) == 0
    other.finish([Outcome(request_id, NOT_SENT)])
    assert look(pending) == COUNT


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(("who", "own_try"), [*((who, 1) for who in WHO), ({}, 2)])
def test_a_lapsed_claim_is_counted_apart_while_its_process_may_record_it(
    enter, clock, claimed, who, own_try, is_written
):
    """The messages count as unknown, and a later attempt looks again: nobody waits for a process that may be dead."""
    _, request_id, began = claimed(**who)
    ledger = enter(own_try)
    pending, counts = pending_of(ledger)
    assert look(pending) == 0
    clock.now = began + DEADLINE + 0.5
    if is_written:
        ledger.lapse()
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.unknown, counts.unrecorded, counts.unknown_requests) == (COUNT, {request_id: COUNT}, set())


@pytest.mark.parametrize("seconds", [0.0, 90.0])
def test_a_lapsed_claim_is_unknown_once_its_process_has_given_up(enter, clock, claimed, seconds):
    """Patience counts from the claim, and never ends before the deadline, until which the request may be posted."""
    _, request_id, began = claimed(**OTHER_TASK)
    ledger = enter(patience=seconds)
    pending, counts = pending_of(ledger)
    clock.now = began + DEADLINE
    assert (look(pending), pending.empty, counts.unknown) == (0, False, 0)
    clock.now = began + max(DEADLINE, seconds) + 0.5
    assert (look(pending), pending.empty) == (0, True)
    assert (counts.unknown, counts.unrecorded, counts.unknown_requests) == (COUNT, {}, {request_id})


def test_a_recorded_unknown_is_unknown_at_once(enter, claimed):
    """Its own process has said that it does not know: an outcome is recorded."""
    other, request_id, _ = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    assert look(pending) == 0
    other.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    assert (look(pending), counts.unknown_requests, counts.unrecorded) == (0, {request_id}, {})


def test_a_person_who_decides_ends_the_wait(enter, clock, claimed, store):
    """A decision is an outcome."""
    _, request_id, began = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    assert look(pending) == 0
    clock.now = began + DEADLINE + 0.5
    store.clock = clock
    resolve(store, request_id, ACCEPTED, "ann")
    assert (look(pending), counts.already_sent) == (0, COUNT)


@pytest.mark.parametrize(("after", "again"), [(BOUND, 0), (BOUND + 0.5, COUNT)])
def test_what_its_process_may_still_record_is_not_sent_again(enter, clock, claimed, after, again):
    """A cut costs no second text where the outcome is recorded in time."""
    _, _, began = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter(), resend=True)
    clock.now = began + after
    assert (look(pending), counts.unknown) == (again, COUNT - again)


def test_the_balance_decides_past_the_deadline(enter, clock, claimed):
    """It is asked first, and what it leaves open is counted apart."""
    _, request_id, began = claimed(**OTHER_TASK)
    undecided = []
    pending, counts = pending_of(enter(), adopts=lambda each: each not in undecided)
    clock.now = began + DEADLINE + 0.5
    assert look(pending) == 0
    messages = pending.take_adopted()[request_id]
    undecided.append(request_id)
    pending.reconcile(messages)
    assert (look(pending), counts.unrecorded) == (0, {request_id: COUNT})


def test_a_send_that_ends_early_counts_what_others_hold_as_unrecorded(enter, clock, claimed):
    """Nothing is looked up any longer, and no outcome is known."""
    _, request_id, _ = claimed(**OTHER_TASK)
    pending, counts = pending_of(enter())
    assert look(pending) == 0
    pending.count_remaining(lambda: False)
    assert (counts.unknown, counts.unrecorded, pending.empty) == (COUNT, {request_id: COUNT}, True)


def test_two_tasks_that_wait_for_each_other_both_end(enter, clock):
    """Each has claims without an outcome, and meets the other's: both waits end as the claims lapse."""
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
    for after, is_over in ((0.0, False), (DEADLINE, False), (0.5, True)):
        clock.now += after
        assert [(look(pending), pending.empty) for pending, _ in waits] == [(0, is_over)] * 2
    assert [counts.unrecorded for _, counts in waits] == [{2: COUNT}, {1: COUNT}]
