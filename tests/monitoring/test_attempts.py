from __future__ import annotations

from support.told import tell

from airflow_provider_sms.monitoring.campaigns import find_campaign, list_campaigns


def listed(ledger, hidden=()):
    return list_campaigns(ledger, may_see=lambda dag_id: dag_id not in hidden, limit=10).campaigns


def test_a_later_attempt_or_run_replaces_earlier_ones(store, ledger):
    """For each task the last run counts, and in it the last attempt of each mapped copy, in this campaign alone."""
    tell(store, state="failed", run_id="r1", map_index=7)
    for index in range(2):
        tell(store, state="failed", run_id="r2", map_index=index)
    tell(store, try_number=2, run_id="r2", map_index=0)
    tell(store, "other", try_number=3, state="failed", run_id="r2", map_index=0)
    tell(store, task_id="other", run_id="r1")
    _, campaign = listed(ledger)
    told = [(each.task_id, each.run_id, each.map_index, each.try_number, each.state) for each in campaign.attempts]
    assert told == [("other", "r1", -1, 1, "ended"), ("t", "r2", 0, 2, "ended"), ("t", "r2", 1, 1, "failed")]
    assert find_campaign(ledger, campaign.id).attempts == campaign.attempts
