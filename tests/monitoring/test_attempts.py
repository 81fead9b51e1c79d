from __future__ import annotations

from sqlalchemy import delete, select
from support.told import tell

from airflow_provider_sms.ledger.schema import claimant, progress
from airflow_provider_sms.monitoring.attempts import list_attempts
from airflow_provider_sms.monitoring.campaigns import dags_of_campaign, find_campaign, list_campaigns


def listed(ledger, hidden=()):
    return list_campaigns(ledger, may_see=lambda dag_id: dag_id not in hidden, limit=10).campaigns


def test_a_later_attempt_or_run_replaces_earlier_ones(store, ledger):
    """For each task the last run counts, and in it the last attempt of each mapped copy, in this campaign alone."""
    tell(store, state="failed", run_id="r1", map_index=7)
    for index in range(2):
        tell(store, state="failed", run_id="r2", map_index=index)
    tell(store, try_number=2, run_id="r2", map_index=0)
    tell(store, "other", try_number=3, state="failed", run_id="r2", map_index=0)
    _, campaign = listed(ledger)
    told = [
        (each.progress.run_id, each.progress.map_index, each.try_number, each.progress.state)
        for each in campaign.attempts
    ]
    assert told == [("r2", 0, 2, "ended"), ("r2", 1, 1, "failed")]
    assert find_campaign(ledger, campaign.id).attempts == campaign.attempts


def test_a_campaign_without_recorded_progress_is_listed(store, ledger):
    """Recording progress may fail; claims are in the ledger all the same, with their claimants."""
    tell(store, "quiet", dag_id="theirs", claims=[(3, "accepted"), (2, "unknown")])
    with store.write(1) as connection:
        connection.execute(delete(progress))
    (campaign,) = listed(ledger)
    assert (campaign.name, campaign.state, campaign.counts.accepted) == ("quiet", "needs attention", 3)
    assert (campaign.latest.dag_id, campaign.total) == ("theirs", None)
    assert listed(ledger, {"theirs"}) == []
    assert dags_of_campaign(ledger, campaign.id) == {"theirs"}


def test_permissions_are_needed_for_dags_without_recorded_progress_too(store, ledger):
    """A DAG whose attempt recorded no progress has sent the campaign as well."""
    tell(store, dag_id="mine", claims=[(1, "accepted")])
    tell(store, dag_id="theirs", claims=[(1, "accepted")], first=5)
    with store.write(1) as connection:
        theirs = select(claimant.c.id).where(claimant.c.dag_id == "theirs")
        connection.execute(delete(progress).where(progress.c.claimant_id.in_(theirs)))
    number = listed(ledger)[0].id
    assert dags_of_campaign(ledger, number) == {"mine", "theirs"}
    assert listed(ledger, {"theirs"}) == []


def test_attempts_are_listed_the_last_first(store, ledger):
    """Each attempt and each leg has its row."""
    tell(store, try_number=1, state="failed")
    tell(store, try_number=2, map_index=4)
    found = list_attempts(ledger, listed(ledger)[0].id)
    assert [(each.try_number, each.map_index, each.state) for each in found] == [(2, 4, "ended"), (1, -1, "failed")]
