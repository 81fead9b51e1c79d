from __future__ import annotations

import pytest
from support.reported import campaign
from support.told import tell

from airflow_provider_sms.monitoring.campaigns import list_campaigns


def listed(ledger):
    return list_campaigns(ledger, may_see=lambda _: True, limit=10)


def test_several_tasks_of_a_campaign_are_counted_together(store, ledger):
    """Mapped copies share a campaign; one that has not counted its rows yet leaves the sum unknown."""
    for index in range(3):
        tell(store, map_index=index, note={"total": 10, "done": 5, "rate": 2.0})
    (found,) = listed(ledger).campaigns
    assert (found.total, found.done, found.rate) == (30, 15, 2.0)
    tell(store, map_index=3, state="checking")
    (found,) = listed(ledger).campaigns
    assert (found.total, found.done) == (None, None)


def test_the_rate_is_that_of_running_attempts(store, ledger):
    """Copies that have ended add nothing to it; if none runs, it is that of the last one."""
    for index, state in enumerate(("ended", "sending", "sending")):
        tell(store, "a", map_index=index, state=state, note={"rate": 40.0})
        tell(store, "b", map_index=index, note={"rate": 30.0})
    rates = {each.name: each.rate for each in listed(ledger).campaigns}
    assert rates == {"a": 80.0, "b": 30.0}


LEFT_OUT = campaign("complete", counts=(3, 0, 0, 3, 3, 2), total=5, done=5, suppressed=4, duplicate=0)
KILLED = campaign("needs attention", "sending", counts=(50,), ago=1000, silent=True, total=100, done=50)
FAILED = campaign("needs attention", "failed", counts=(50,), total=100, done=50, not_sent=50)


@pytest.mark.parametrize(
    ("found", "outcomes"),
    [
        (LEFT_OUT, [("Accepted", 3), ("Left out by the service", 2), ("Suppressed", 4)]),
        (KILLED, [("Accepted", 50), ("Still to do", 50)]),
        (FAILED, [("Accepted", 50), ("Not sent", 50)]),
    ],
    ids=["left out", "killed", "failed"],
)
def test_the_outcomes_count_each_row_once(found, outcomes):
    """What the service left out, what a dead process did not reach, and what a failed attempt left unsent, apart."""
    assert found.outcomes == outcomes
