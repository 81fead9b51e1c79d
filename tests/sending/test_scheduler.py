from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

from support.sending import people

from airflow_provider_sms.messages.blocks import Block
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending.request_batch import Chunks
from airflow_provider_sms.sending.scheduler import RateLimiter, RequestScheduler
from airflow_provider_sms.sending.stop_conditions import Credit, StopConditions


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
    conditions = StopConditions(window, clock=lambda: now[0], credit=Credit(Prices(1), Decimal(5)))
    scheduler = RequestScheduler(conditions, concurrency=2, max_per_second=None)
    britons = [m._replace(destination=f"44770090000{n}") for n, m in enumerate(people(5, 10))]
    chunks = Chunks([Block.of(people(5) + britons)], 5)
    (waiting,) = scheduler.due(chunks, 0.0, 1, lambda: True)
    scheduler.retry(waiting, 1.0)
    now[0] += 15 * 60.0  # the hours of South Africa have ended
    (next_one,) = scheduler.due(chunks, 1.0, 0, lambda: True)
    assert (list(waiting.messages), next_one.chunk.keys) == ([], [m.key for m in britons])


def test_no_request_goes_before_one_that_waits():
    """Of rows with the same key values the first one is sent, also where a pause or a busy ledger kept it back."""
    scheduler = RequestScheduler(StopConditions(), concurrency=3, max_per_second=None)
    chunks = Chunks([Block.of(people(10))], 5)
    (first, second) = scheduler.due(chunks, 0.0, 0, lambda: True)
    scheduler.retry(first, 1.0)
    assert list(scheduler.due(Chunks([Block.of(people(5))], 5), 0.5, 1, lambda: True)) == []
    assert (scheduler.next_wakeup(0.5, 1, more=True), second.chunk.keys) == (0.5, [m.key for m in people(10)[5:]])
    again = scheduler.due(Chunks([Block.of(people(5))], 5), 1.0, 1, lambda: True)
    assert next(again) is first
    assert len(list(again)) == 1
