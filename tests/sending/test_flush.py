from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.sending.sender import flush
from airflow_provider_sms.stop_flag import StopFlag

NEVER = float("inf")


class Silent:
    """A ledger of which each attempt takes a while, and a clock that goes on with it.

    :param back_at: when it answers again.
    :param stopped_at: when the task is told to stop.
    """

    def __init__(self, seconds, back_at, stopped_at):
        self.now = 0.0
        self.begun = []
        self.error = OSError("the connection is lost")
        self._seconds = seconds
        self._back_at = back_at
        self._stopped_at = stopped_at
        self._stop = StopFlag()
        self.patience = Patience(75.0, self._stop, self.wait, lambda: self.now)
        self.wait(0.0)

    def wait(self, seconds):
        self.now += seconds
        if self.now >= self._stopped_at:
            self._stop.set()

    def finish(self, outcomes):
        self.begun.append(self.now)
        if self.now < self._back_at:
            self.wait(self._seconds)
            raise self.error


@pytest.mark.parametrize(
    ("seconds", "back_at", "stopped_at", "begun", "last"),
    [
        # Attempts that last are fewer, so that a task ends in time; those that fail at once go on.
        *((0.0, NEVER, NEVER, 151, 75.0), (10.0, NEVER, NEVER, 8, 73.5)),
        *((15.0, NEVER, NEVER, 5, 62.0), (100.0, NEVER, NEVER, 1, 0.0)),
        # A cut of a minute is outlived.
        (15.0, 60.0, NEVER, 5, 62.0),
        # Airflow kills a task five seconds after it was told to stop: no attempt begins after the third.
        *((0.0, NEVER, 0.0, 7, 3.0), (2.0, NEVER, 0.0, 2, 2.5), (15.0, NEVER, 0.0, 1, 0.0)),
        *((0.0, NEVER, 20.0, 47, 23.0), (0.0, 22.5, 20.0, 46, 22.5)),
    ],
)
def test_outcomes_are_recorded_until_time_is_up(seconds, back_at, stopped_at, begun, last):
    """Whatever the driver raises, the ledger is asked again; no attempt begins too late to end in time."""
    ledger = Silent(seconds, back_at, stopped_at)
    error = flush(ledger, [])
    assert (len(ledger.begun), ledger.begun[-1], error) == (begun, last, None if last >= back_at else ledger.error)
