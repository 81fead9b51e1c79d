from __future__ import annotations

import random

import pytest
from support.sending import people

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.sending import pending as pending_module
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.pending import PendingMessages


@pytest.fixture
def bound(monkeypatch):
    """Let few messages be remembered: a test of the real number would take a minute."""
    monkeypatch.setattr(pending_module, "MAX_HELD", 20)
    return 20


def test_no_more_is_remembered_of_what_others_hold_than_the_bound(enter, bound):
    """Memory is flat, however much of the table other live processes hold: reading on waits for their outcome."""
    held = people(1000)
    other = enter(1)
    other.commit(chunks=[Chunk([m.key for m in held], [m.destination for m in held])], claim_seconds=60.0)
    read = []

    def blocks():
        for start in range(0, 1000, 10):
            read.append(start)
            yield held[start : start + 10]

    pending = PendingMessages(blocks(), enter(2), SendCounts(), resend=lambda *_: False)
    assert pending.next_chunk(100) == ([], {})
    assert (len(read) * 10, pending.readable, pending.empty) == (bound, False, False)


def test_what_is_free_is_taken_as_columns(enter):
    """A send of millions makes no object for a message that nobody has held."""
    pending = PendingMessages([people(25)], enter(1), SendCounts(), resend=lambda *_: False)
    chunks = [pending.next_chunk(10)[0] for _ in range(2)]
    assert [type(chunk) for chunk in chunks] == [MessageColumns] * 2
    assert [len(chunk) for chunk in (*chunks, pending.next_chunk(10)[0])] == [10, 10, 5]


@pytest.mark.parametrize("seed", range(20))
def test_every_message_is_taken_once_or_counted(enter, seed, monkeypatch):
    """Whatever is held or cut into blocks: what is free is taken once, in full chunks; the rest counts."""
    chance = random.Random(seed)
    monkeypatch.setattr(pending_module, "LOOK_UP", chance.choice([3, 10, 1000]))
    table = [m._replace(row=row) for row, m in enumerate(chance.sample(people(260), k=200))]
    sent, unknown = chance.sample(people(260), 40), chance.sample(people(260), 15)
    earlier = enter(1)
    for messages, state in ((sent, ACCEPTED), (unknown, UNKNOWN)):
        (claim,) = earlier.commit(chunks=[Chunk([m.key for m in messages], [m.destination for m in messages])])
        if claim.request_id is not None:
            earlier.commit(outcomes=[Outcome(claim.request_id, state)])
    held = {m.key for m in (*sent, *unknown)}
    free = {m.key for m in table} - held
    cuts = sorted(chance.sample(range(1, 200), 5))
    blocks = [table[start:stop] for start, stop in zip([0, *cuts], [*cuts, 200], strict=True)]
    tally, ledger = SendCounts(), enter(2)
    pending = PendingMessages(iter(blocks), ledger, tally, resend=lambda *_: False)

    taken = []
    while not pending.empty:
        chunk, _ = pending.next_chunk(10)
        ledger.commit(chunks=[Chunk([m.key for m in chunk], [m.destination for m in chunk])], claim_seconds=60.0)
        assert len(chunk) == min(10, len(free) - len(taken))
        taken += chunk
    assert (len(taken), {m.key for m in taken}) == (len(free), free)
    assert tally.already_sent + tally.unknown == sum(m.key in held for m in table)
    assert tally.duplicate == 0


@pytest.mark.parametrize("may_look", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_is_counted_whole(enter, seed, may_look):
    """When sending ends early, each message that was read or can be read counts, in a block or not."""
    chance = random.Random(seed)
    table = [m._replace(row=row) for row, m in enumerate(people(200))]
    tally, ledger = SendCounts(), enter(2)
    pending = PendingMessages(iter([table[:150], table[150:]]), ledger, tally, resend=lambda *_: False)
    chunk, _ = pending.next_chunk(chance.choice([7, 30]))
    pending.count_remaining(lambda: may_look)
    # Told not to look, it reads no further block.
    read = table if may_look else table[:150]
    assert len(chunk) + tally.not_sent == len(read)


@pytest.mark.parametrize("from_earlier", [False, True])
def test_unplanned_messages_are_not_sent(enter, from_earlier):
    """A plan that binds the send leaves out what became free only after it."""
    free, planned = ([m._replace(row=row) for row, m in enumerate(people(5, first), first)] for first in (10, 15))
    tally = SendCounts()
    pending = PendingMessages(
        [() if from_earlier else free + planned],
        enter(),
        tally,
        resend=lambda *_: False,
        planned=lambda rows: [row >= 15 for row in rows],
    )
    if from_earlier:
        pending.reconcile(free + planned)
    chunk, _ = pending.next_chunk(100)
    assert [m.row for m in chunk] == [m.row for m in planned]
    assert (tally.unplanned, tally.not_sent, tally.duplicate) == (5, 5, 0)
