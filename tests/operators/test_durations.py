from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.durations import read_duration, seconds_of


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5), (0.5, 0.5), (0, 0), (-1, -1), (timedelta(minutes=2), 120.0), (timedelta(milliseconds=1), 0.001)],
    ids=repr,
)
def test_a_duration_is_a_number_of_seconds_or_a_timedelta(value, seconds):
    """Exactly as given."""
    assert seconds_of(value) == seconds


NONE = ["5", None, True, float("nan"), float("inf"), -float("inf"), 1e300, 10**400, timedelta.max, [5]]


@pytest.mark.parametrize("value", NONE, ids=repr)
def test_everything_else_is_no_duration(value):
    """Nor is what no date could be reckoned with."""
    assert seconds_of(value) is None
    with pytest.raises(InputError, match=r"^min_interval must be a number of seconds above 0, or a timedelta$"):
        read_duration("min_interval", value)


@pytest.mark.parametrize("value", [0, -1, 0.0, timedelta(0), timedelta(seconds=-1)], ids=repr)
def test_a_wait_is_above_zero(value):
    """The error says what else the argument may be."""
    with pytest.raises(InputError, match=r"^min_interval must be a number of seconds above 0, a timedelta, or None$"):
        read_duration("min_interval", value, "or None")
