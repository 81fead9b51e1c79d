from __future__ import annotations

from support.engine import by_request
from support.sending import people

from airflow_provider_sms.sending.request_batch import Chunks, RequestBatch
from airflow_provider_sms.sending.schedule import RateLimiter, Schedule
from airflow_provider_sms.sending.stop_conditions import StopConditions


def messages(texts):
    return next(by_request(texts))


def keys(*places):
    return [people(5)[place].key for place in places]


def test_a_batch_keeps_the_messages_that_were_claimed_and_returns_those_of_other_requests():
    """A batch that is claimed again claims what it kept; the keys of the others tell which requests hold them."""
    batch = RequestBatch(messages(people(5)))
    assert batch.messages.keys == keys(0, 1, 2, 3, 4)
    assert (batch.keep([0, 3]), batch.messages.keys) == (keys(1, 2, 4), keys(0, 3))
    assert batch.messages == messages([people(5)[0], people(5)[3]])


def test_a_repeat_of_a_claimed_message_goes_to_nobody():
    """A message that stood twice in a batch was claimed once, and its repeat is not looked up as lost."""
    batch = RequestBatch(messages(people(2) + people(1)))
    assert (batch.keep([0, 1]), batch.messages) == ([], messages(people(2)))


def test_requests_are_spaced_evenly():
    """Two requests a second are half a second apart, also after a pause."""
    pacer = RateLimiter(2.0)
    gone = []
    for now in (0.0, 0.1, 0.5, 0.6, 0.99, 1.0, 5.0, 5.1, 5.5):
        if pacer.allowed(now, 3):
            pacer.take(now)
            gone.append(now)
    assert gone == [0.0, 0.5, 1.0, 5.0, 5.5]


def test_a_hold_lets_nothing_go():
    """While the service asks to wait, no request goes, whatever the limit; without one, all may go then."""
    pacer = RateLimiter(None)
    pacer.take(0.0)
    pacer.hold(10.0)
    assert (pacer.allowed(9.9, 7), pacer.delay(9.0), pacer.allowed(10.0, 7)) == (0, 1.0, 7)


def test_no_request_goes_before_one_that_waits():
    """Of rows with the same key values the first one is sent, also where a pause or a busy ledger kept it back."""
    schedule = Schedule(StopConditions(), concurrency=3, max_per_second=None)
    chunks = Chunks(by_request(people(10), 5))
    (first, second) = schedule.due(chunks, 0.0, 0, lambda: True)
    schedule.retry(first, 1.0)
    assert list(schedule.due(Chunks(by_request(people(5), 5)), 0.5, 1, lambda: True)) == []
    assert (schedule.next_wakeup(0.5, 1, more=True), second.messages.keys) == (0.5, [m.key for m in people(10)[5:]])
    again = schedule.due(Chunks(by_request(people(5), 5)), 1.0, 1, lambda: True)
    assert next(again) is first
    assert len(list(again)) == 1
