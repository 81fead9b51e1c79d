from __future__ import annotations

from support.sending import people

from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.sending.request_batch import RequestBatch


def test_a_batch_keeps_the_messages_that_were_claimed_and_returns_those_of_other_requests():
    """The others are looked up again."""
    batch = RequestBatch(people(5), {})
    assert batch.keep([0, 3]) == [people(5)[1], people(5)[2], people(5)[4]]
    assert batch.messages == [people(5)[0], people(5)[3]]


def test_what_is_claimed_next_is_what_was_kept():
    """A batch that is claimed again, after some of its messages were taken out, claims the others alone."""
    batch = RequestBatch(people(5), {})
    assert len(batch.chunk.keys) == 5
    batch.keep([1, 4])
    assert batch.chunk.keys == [people(5)[1].key, people(5)[4].key]


def test_a_repeat_of_a_claimed_message_goes_to_nobody():
    """A message that stood twice in a batch was claimed once, and its repeat is not looked up as lost."""
    batch = RequestBatch(people(2) + people(1), {})
    assert batch.keep([0, 1]) == []
    assert batch.messages == people(2)


def test_a_service_that_takes_others_is_given_more_attempts():
    """A service that throttles takes other messages meanwhile; one that is away takes none."""
    batch = RequestBatch(people(1), {}, attempt=5, accepted_before=10)
    batch.turn_away(10, unavailable=True)
    assert (batch.attempt, batch.turned_away, batch.unavailable) == (5, 1, 1)
    batch.turn_away(11, unavailable=False)
    assert (batch.attempt, batch.accepted_before, batch.turned_away, batch.unavailable) == (1, 11, 2, 1)


def test_messages_are_claimed_and_kept_as_the_columns_that_they_came_as():
    """A message becomes an object only where it is somebody else's: objects would keep the garbage collector busy."""
    batch = RequestBatch(MessageColumns.of(people(5)), {})
    assert batch.chunk.keys is batch.messages.keys
    assert batch.keep(range(5)) == []
    assert isinstance(batch.messages, MessageColumns)
    assert batch.keep([0, 3]) == [people(5)[1], people(5)[2], people(5)[4]]
    assert batch.messages == [people(5)[0], people(5)[3]]
