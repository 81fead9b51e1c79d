from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.sending.flush import FLUSH_SECONDS, flush


class Silent:
    """A ledger of which each attempt takes a while, and a clock that goes on with it."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.now = 0.0
        self.begun = []

    def finish(self, outcomes):
        self.begun.append(self.now)
        self.now += self.seconds
        raise LedgerError("did not answer")

    def sleep(self, seconds):
        self.now += seconds

    def clock(self):
        return self.now


@pytest.mark.parametrize("seconds", [0.0, 10.0, 15.0, 60.0])
def test_no_attempt_begins_too_late(seconds):
    """Attempts that last are fewer, so that a task ends in time; those that fail at once go on."""
    ledger = Silent(seconds)
    assert str(flush(ledger, [], ledger.sleep, ledger.clock)) == "did not answer"
    assert ledger.begun[-1] <= FLUSH_SECONDS
    assert len(ledger.begun) == {0.0: 8, 10.0: 4, 15.0: 3, 60.0: 1}[seconds]
