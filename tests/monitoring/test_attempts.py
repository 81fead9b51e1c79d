from __future__ import annotations

from support.sending import claimant
from support.told import tell

from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.requests import named_requests
from airflow_provider_sms.monitoring.attempts import tasks_to_clear
from airflow_provider_sms.monitoring.campaigns import find_campaign


def test_a_later_attempt_or_run_replaces_earlier_ones(store, ledger):
    """For each task the last run counts, and in it the last attempt of each mapped copy, in this campaign alone."""
    tell(store, state="failed", run_id="r1", map_index=7)
    for index in range(2):
        tell(store, state="failed", run_id="r2", map_index=index)
    tell(store, try_number=2, run_id="r2", map_index=0)
    tell(store, "other", try_number=3, state="failed", run_id="r2", map_index=0)
    tell(store, task_id="other", run_id="r1")
    told = [
        (each.task_id, each.run_id, each.map_index, each.try_number, each.state)
        for each in find_campaign(ledger, 1).attempts
    ]
    assert told == [("other", "r1", -1, 1, "ended"), ("t", "r2", 0, 2, "ended"), ("t", "r2", 1, 1, "failed")]


def test_tasks_that_made_requests_or_failed_on_unknown_ones_are_found(store):
    """Of each task instance the last attempt counts; whose requests are unknown does not matter."""
    (one,) = tell(store, "c", task_id="maker", claims=[(1, "unknown")])
    (other,) = tell(store, "other", task_id="maker", claims=[(1, "unknown")])

    def ended(state, unknown, *, campaign="c", try_number=1, **who):
        claimant_id = register(store, claimant(try_number, **who))
        note_progress(store, campaign, claimant_id, state, figures={"unknown": unknown})

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

    def found(*requests):
        return [(task, run, index) for _, task, run, index in tasks_to_clear(store, named_requests(store, requests))]

    maker, failed = ("maker", "r", -1), [("t", "r", 0), ("t", "other", 3), ("t", "r", 6)]
    assert found(one) == [maker, *failed]
    assert sorted(found(one, other)) == sorted([maker, *failed, ("t", "r", 4)])
