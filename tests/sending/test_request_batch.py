from __future__ import annotations

import random

import pytest
from support.sending import people

from airflow_provider_sms.sending.request_batch import Chunks, RequestBatch


def keys(*places):
    return [people(5)[place].key for place in places]


def test_a_batch_keeps_the_messages_that_were_claimed_and_returns_those_of_other_requests():
    """A batch that is claimed again claims what it kept; the keys of the others tell which requests hold them."""
    batch = RequestBatch(people(5))
    assert batch.chunk.keys == keys(0, 1, 2, 3, 4)
    assert (batch.keep([0, 3]), batch.chunk.keys) == (keys(1, 2, 4), keys(0, 3))
    assert batch.messages == [people(5)[0], people(5)[3]]


def test_a_repeat_of_a_claimed_message_goes_to_nobody():
    """A message that stood twice in a batch was claimed once, and its repeat is not looked up as lost."""
    batch = RequestBatch(people(2) + people(1))
    assert (batch.keep([0, 1]), batch.messages) == ([], people(2))


def test_a_service_that_takes_others_is_given_more_attempts():
    """A service that throttles takes other messages meanwhile; one that is away takes none."""
    batch = RequestBatch(people(1), attempt=5, taken_before=10)
    batch.turn_away(10, unavailable=True)
    assert (batch.attempt, batch.turned_away, batch.unavailable) == (5, 1, 1)
    batch.turn_away(11, unavailable=False)
    assert (batch.attempt, batch.taken_before, batch.turned_away, batch.unavailable) == (1, 11, 2, 1)


@pytest.mark.parametrize("seed", range(20))
def test_every_message_goes_into_one_request_and_each_is_full_but_the_last(seed):
    """In the order of the table."""
    chance = random.Random(seed)
    table, size = people(chance.randint(0, 120)), chance.choice([1, 7, 10, 100])
    chunks = Chunks(table, size)
    taken = []
    while chunks.any:
        chunk = chunks.take()
        assert len(chunk) == min(size, len(table) - len(taken))
        taken += chunk
    assert ([each.key for each in taken], list(chunks.take())) == ([each.key for each in table], [])
