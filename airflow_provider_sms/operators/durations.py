"""Durations as arguments: a number of seconds, or a ``datetime.timedelta``.

Apart from each operator, because the options of tasks and of files share the rule.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow_provider_sms.exceptions import InputError

LONGEST = timedelta(days=36_525)
"""A century: a date that is much later cannot be written."""


def seconds_of(value: Any) -> float | None:
    """Return a duration in seconds; None for a value that is not a duration, is not finite, or is beyond a century.

    :param value: an int or a float of seconds, or a timedelta.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    # A comparison with NaN is false.
    return seconds if type(seconds) in (int, float) and abs(seconds) <= LONGEST.total_seconds() else None


def read_duration(name: str, value: Any, instead: str = "") -> float:
    """Return a duration in seconds.

    :param name: the argument's name.
    :param value: a number of seconds above 0, or such a timedelta.
    :param instead: what else the argument may be, for an error.
    :raises InputError: names the argument.
    """
    seconds = seconds_of(value)
    if seconds is None or seconds <= 0:
        raise InputError(
            f"{name} must be a number of seconds above 0, a timedelta, {instead}"
            if instead
            else f"{name} must be a number of seconds above 0, or a timedelta"
        )
    return seconds
