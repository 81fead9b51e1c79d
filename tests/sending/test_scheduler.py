from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

from support.sending import people

from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending.scheduler import RateLimiter, RequestScheduler
from airflow_provider_sms.sending.stop_conditions import Credit, StopConditions


class Pending:
    """Chunks of messages, and those that are kept back for longer than the send."""

    def __init__(self, *chunks):
        self.chunks = list(chunks)
        self.unsent = []

    def next_chunk(self, size):
        return (self.chunks.pop(0) if self.chunks else [], {})

    def count_unsent(self, late, take_over):
        self.unsent += late


def test_without_a_limit_all_may_go():
    """No limit means none."""
    pacer = RateLimiter(None)
    pacer.take(0.0)
    assert (pacer.allowed(0.0, 7), pacer.delay(0.0)) == (7, 0.0)


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
    """While the service asks to wait, no request goes, whatever the limit."""
    pacer = RateLimiter(None)
    pacer.hold(10.0)
    assert (pacer.allowed(9.9, 1), pacer.delay(9.0), pacer.allowed(10.0, 1)) == (0, 1.0, 1)


def test_a_request_whose_hours_have_ended_frees_its_credit():
    """A request waits until nobody in it may be texted any more: what it would have cost is there for others."""
    now = [datetime(2026, 1, 14, 17, 50, tzinfo=timezone.utc).timestamp()]
    window = SendWindow(start="08:00", end="20:00", timezone="UTC", recipient_time_zone=True)
    credit = Credit(Prices(1), Decimal(10), Decimal(5))
    scheduler = RequestScheduler(
        StopConditions(window, clock=lambda: now[0], credit=credit), chunk_size=5, concurrency=2, max_per_second=None
    )
    britons = [m._replace(destination=f"44770090000{n}") for n, m in enumerate(people(5, 10))]
    pending = Pending(people(5), britons)
    (waiting,) = scheduler.due(pending, 0.0, 1, lambda: True)
    scheduler.retry(waiting, 1.0)
    now[0] += 15 * 60.0  # the hours of South Africa have ended
    (next_one,) = scheduler.due(pending, 1.0, 0, lambda: True)
    assert (pending.unsent, next_one.messages) == (people(5), britons)


def test_no_request_goes_before_one_that_was_deferred():
    """Of rows with the same key values the first one is sent, also where a pause or a busy ledger kept it back."""
    scheduler = RequestScheduler(StopConditions(), chunk_size=5, concurrency=3, max_per_second=None)
    first, second = people(5), people(5, 10)
    pending = Pending(first)
    (deferred,) = scheduler.due(pending, 0.0, 0, lambda: True)
    scheduler.retry(deferred, 1.0)
    pending.chunks.append(second)
    assert list(scheduler.due(pending, 0.5, 0, lambda: True)) == []
    assert scheduler.next_wakeup(0.5, 0, more=True) == 0.5
    assert [batch.messages for batch in scheduler.due(pending, 1.0, 0, lambda: True)] == [first, second]
