from __future__ import annotations

import pytest
from support.sending import claimant

from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.monitoring.attempts import failed_on_unknown


@pytest.fixture
def ended(store):
    """Note the end of an attempt, or of a leg of one."""

    def ended(state, unknown, *, campaign="c", try_number=1, **who):
        claimant_id = register(store, claimant(try_number, **who))
        note_progress(store, campaign, claimant_id, state, figures={"unknown": unknown})

    return ended


def test_tasks_that_failed_on_unknown_requests_are_found(store, ended):
    """Of each task instance the last attempt counts; whose requests are unknown does not matter."""
    ended("failed", 3, map_index=0)
    ended("failed", 0, map_index=1)
    ended("ended", 3, map_index=2)
    ended("failed", 3, map_index=3, run_id="other")
    ended("failed", 3, map_index=4, campaign="other")
    ended("failed", 3, map_index=5)
    ended("ended", 0, map_index=5, try_number=2)
    ended("ended", 0, map_index=6)
    ended("failed", 1, map_index=6, try_number=2)
    ended("failed", 3, map_index=7)
    ended("sending", 3, map_index=7, try_number=2)
    found = failed_on_unknown(store, ["c"])
    assert [(who.map_index, who.run_id, who.try_number) for who in found] == [(0, "r", 1), (3, "other", 1), (6, "r", 2)]
    assert [who.map_index for who in failed_on_unknown(store, ["c", "other"])] == [0, 3, 4, 6]
    assert failed_on_unknown(store, []) == []
