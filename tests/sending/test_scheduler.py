from __future__ import annotations

from airflow_provider_sms.sending.scheduler import RateLimiter


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
