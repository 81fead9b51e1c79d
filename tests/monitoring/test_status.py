from __future__ import annotations

import pytest

from airflow_provider_sms.monitoring.counts import Counts
from airflow_provider_sms.monitoring.models import Attempt
from airflow_provider_sms.monitoring.status import campaign_state, current_attempts, is_silent

NOW = 10_000.0
WAITS = ("waiting for credit", "waiting for hours")


def reported(state="ended", *, claimant_id=1, task="t", run="r", map_index=-1, ago=1.0, not_sent=0):
    silent = is_silent(state, NOW - ago, NOW)
    rows = (None, None, not_sent, 0, None)
    return Attempt(claimant_id, "d", task, run, map_index, 1, state, NOW - ago, *rows, {}, silent)


def state_of(*attempts, unknown=0, under_way=0, paused=False):
    return campaign_state(attempts, Counts(unknown=unknown, under_way=under_way), paused=paused)


@pytest.mark.parametrize(
    ("attempts", "how", "state"),
    [
        *(([reported(each)], {}, "sending") for each in ("checking", "sending", "paused")),
        *(([reported(each)], {}, each) for each in WAITS),
        ([reported()], {}, "complete"),
        ([reported(not_sent=None)], {}, "complete"),
        # A campaign is complete only if nobody has to do anything about it.
        *(([reported(state, not_sent=rows)], {}, "needs attention") for state, rows in (("failed", 0), ("ended", 1))),
        ([reported()], {"unknown": 1}, "needs attention"),
        # While an attempt works or waits, that is the state, whatever has gone wrong already.
        ([reported("failed"), reported("sending")], {"unknown": 1}, "sending"),
        ([reported("waiting for credit")], {"unknown": 1}, "waiting for credit"),
        ([reported()], {"under_way": 1}, "sending"),
        ([reported("sending")], {"paused": True}, "paused"),
        # Nobody would notice a copy that failed, or died, while another one waits for days.
        *(
            ([reported(wait), other], {}, "needs attention")
            for wait in WAITS
            for other in (reported("failed"), reported("sending", ago=1e6))
        ),
    ],
)
def test_a_campaign_has_one_state(attempts, how, state):
    """A pause comes first, then what is at work, what has failed, what is waited for, and what is left to do."""
    assert state_of(*attempts, **how) == state


@pytest.mark.parametrize(("state", "seconds"), [("sending", 300), ("paused", 300), ("checking", 1800)])
def test_an_attempt_that_is_silent_for_long_counts_as_dead(state, seconds):
    """A process that was killed reports nothing; one that waits may report nothing for days."""
    assert state_of(reported(state, ago=seconds - 1)) == "sending"
    assert state_of(reported(state, ago=seconds + 1)) == "needs attention"
    assert state_of(reported("waiting for credit", ago=1e6)) == "waiting for credit"


def test_an_earlier_run_that_is_still_at_work_counts_too():
    """Two runs may send one campaign at the same time; one that is silent has been replaced."""
    later = reported("ended", claimant_id=5, run="b")
    busy, silent = reported("sending", claimant_id=2, run="a"), reported("sending", claimant_id=2, run="a", ago=1e6)
    assert state_of(*current_attempts([busy, later])) == "sending"
    assert current_attempts([silent, later]) == [later]
    replaced = [reported("sending", claimant_id=2, run="a"), reported("failed", claimant_id=3, run="a"), later]
    assert current_attempts(replaced) == [later]
