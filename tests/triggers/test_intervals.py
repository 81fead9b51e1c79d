from __future__ import annotations

from itertools import pairwise

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseSensorOperator

from airflow_provider_sms.triggers.intervals import backed_off

STARTED_AT = 1_790_000_000.25
WEEK = 7 * 24 * 3600.0


@pytest.mark.parametrize("poke_interval", [0.0, 0.5, 1.0, 60.0, 90.5, 3600.0])
@pytest.mark.parametrize("elapsed", [0.0, 1.0, 59.9, 600.0, 7_777.0, 86_400.0])
def test_the_intervals_are_airflows(poke_interval, elapsed):
    """A deferred sensor waits to the second as Airflow's own does where it remembers nothing either."""
    with DAG("dag", schedule=None):
        sensor = BaseSensorOperator(
            task_id="wait", mode="reschedule", poke_interval=poke_interval, exponential_backoff=True, timeout=WEEK * 99
        )
    try:
        airflows = sensor._get_next_poke_interval(STARTED_AT, lambda: elapsed, 1)
    except OverflowError:
        # Of an interval of 0, once there were a thousand looks.
        airflows = 1
    assert backed_off(poke_interval, elapsed=elapsed, seed=f"dag#wait#{STARTED_AT}") == airflows


def test_each_wait_is_longer_within_its_bounds():
    """The first is between half the interval and all of it, and the bounds double with each look."""
    waits, elapsed = [], 0.0
    for _ in range(12):
        waits.append(backed_off(60.0, elapsed=elapsed, seed="any"))
        elapsed += waits[-1]
    assert [30 * 2**look <= wait < 60 * 2**look for look, wait in enumerate(waits)] == [True] * 12
    assert all(before <= after for before, after in pairwise(waits))


def test_a_later_triggerer_goes_on_where_the_other_was():
    """In the middle of an interval, the one after it is the next: the backoff does not begin anew."""
    first = backed_off(60.0, elapsed=0.0, seed="any")
    second = backed_off(60.0, elapsed=first, seed="any")
    assert backed_off(60.0, elapsed=first + second / 2, seed="any") == second


def test_sensors_that_begin_together_do_not_look_together():
    """The jitter depends on the seed."""
    assert len({backed_off(3600.0, elapsed=0.0, seed=f"dag#wait_{n}") for n in range(20)}) > 10
