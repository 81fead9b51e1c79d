from __future__ import annotations

from support.told import tell

from airflow_provider_sms.monitoring.campaigns import list_campaigns


def listed(ledger):
    return list_campaigns(ledger, may_see=lambda _: True, limit=10)


def test_several_tasks_of_a_campaign_are_counted_together(store, ledger):
    """Mapped copies share a campaign; one that has not counted its rows yet leaves the sum unknown."""
    for index in range(3):
        tell(store, map_index=index, note={"total": 10, "done": 5, "rate": 2.0})
    (campaign,) = listed(ledger).campaigns
    assert (campaign.total, campaign.done, campaign.rate) == (30, 15, 2.0)
    tell(store, map_index=3, state="checking")
    (campaign,) = listed(ledger).campaigns
    assert (campaign.total, campaign.done) == (None, None)


def test_the_rate_is_that_of_running_attempts(store, ledger):
    """Copies that have ended add nothing to it; if none runs, it is that of the last one."""
    for index, state in enumerate(("ended", "sending", "sending")):
        tell(store, "a", map_index=index, state=state, note={"rate": 40.0})
        tell(store, "b", map_index=index, note={"rate": 30.0})
    rates = {campaign.name: campaign.rate for campaign in listed(ledger).campaigns}
    assert rates == {"a": 80.0, "b": 30.0}
