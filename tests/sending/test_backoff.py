from __future__ import annotations

from airflow_provider_sms.sending.backoff import Backoff


def test_waits_are_bounded_in_length_and_number():
    """Waits grow up to the longest, and end."""
    backoff = Backoff(attempts=8, base=1.0, longest=10.0)
    waits = [backoff.wait(attempt) for attempt in range(1, 9)]
    assert waits[-1] is None
    assert all(0 <= wait <= limit for wait, limit in zip(waits, [1, 2, 4, 8, 10, 10, 10], strict=False))


def test_retry_after_is_granted_within_reason():
    """The wait that the service asks for is kept, but not for an hour."""
    backoff = Backoff(longest_retry_after=300.0)
    assert [backoff.wait(1, asked) for asked in (0.0, 17.0, 3600.0)] == [0.0, 17.0, 300.0]


def test_a_request_that_waits_with_others_has_more_attempts():
    """While the service takes other requests, one that is turned away is posted three times as often."""
    assert Backoff(attempts=10).attempts_beside_others == 30
