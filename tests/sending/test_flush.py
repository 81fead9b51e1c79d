from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.sending.sender import STOPPED_SECONDS, flush
from airflow_provider_sms.stop_flag import StopFlag

NO_ANSWER = LedgerError("did not answer")


class Silent:
    """A ledger of which each attempt takes a while, and a clock that goes on with it.

    :param back_at: when it answers again.
    """

    def __init__(self, seconds, back_at=float("inf"), stop=None, sleep=None, error=NO_ANSWER):
        self.patience = Patience(75.0, stop, sleep or self.sleep, self.clock)
        self.seconds = seconds
        self.back_at = back_at
        self.error = error
        self.now = 0.0
        self.begun = []

    def finish(self, outcomes):
        self.begun.append(self.now)
        if self.now >= self.back_at:
            return
        self.now += self.seconds
        raise self.error

    def sleep(self, seconds):
        self.now += seconds

    def clock(self):
        return self.now


@pytest.mark.parametrize(
    ("seconds", "is_stopped", "begun"),
    [
        *((0.0, False, 151), (10.0, False, 8), (15.0, False, 5), (100.0, False, 1)),
        *((0.0, True, 7), (2.0, True, 2), (15.0, True, 1)),
    ],
)
def test_no_attempt_begins_too_late(seconds, is_stopped, begun):
    """Attempts that last are fewer, so that a task ends in time; those that fail at once go on.

    Airflow kills a task five seconds after it was told to stop: no attempt begins after the third.
    """
    stop = StopFlag()
    if is_stopped:
        stop.set()
    ledger = Silent(seconds, stop=stop)
    assert str(flush(ledger, [])) == "did not answer"
    assert ledger.begun[-1] <= (STOPPED_SECONDS if is_stopped else ledger.patience.seconds)
    assert len(ledger.begun) == begun


@pytest.mark.parametrize("error", [NO_ANSWER, OSError("the connection is lost")])
def test_a_cut_of_a_minute_is_outlived(error):
    """A ledger that answers again after 60 seconds is asked until then, whatever a driver raises until then."""
    assert flush(Silent(15.0, back_at=60.0, error=error), []) is None


@pytest.mark.parametrize("back_at", [22.5, float("inf")])
def test_a_stop_ends_a_wait(back_at):
    """A send that waits for the ledger when it is told to stop tries on for three seconds, and leaves."""
    stop = StopFlag()

    def sleep(seconds):
        ledger.sleep(seconds)
        if ledger.now >= 20.0:
            stop.set()

    ledger = Silent(0.0, back_at, stop, sleep)
    error = flush(ledger, [])
    assert (error is None) is (back_at < 23.0)
    assert 22.5 <= ledger.begun[-1] == ledger.now < 23.5
