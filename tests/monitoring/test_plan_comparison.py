from __future__ import annotations

from decimal import Decimal

from support.told import tell

from airflow_provider_sms.monitoring.campaigns import find_campaign
from airflow_provider_sms.monitoring.plan_comparison import compare_with_plan


def test_a_plan_is_compared_with_what_its_own_run_did(store, ledger):
    """For a retry the first plan counts, and for a campaign of several runs the requests of the last one."""
    tell(store, run_id="r1", claims=[(9, "accepted")], note={"plan": {"to_send": 9}})
    tell(store, run_id="r2", claims=[(6, "accepted")], first=10, state="failed", note={"plan": {"to_send": 10}})
    tell(store, run_id="r2", try_number=2, claims=[(4, "accepted")], first=16, note={"plan": {"to_send": 4}})
    found = compare_with_plan(ledger, find_campaign(ledger, 1))
    assert ([plan["to_send"] for plan in found.plans], found.counts.accepted, found.counts.cost) == (
        [10],
        10,
        Decimal(15),
    )


def test_mapped_copies_each_have_a_plan(store, ledger):
    """Their plans belong to one run, and are shown together."""
    for index in (0, 1):
        tell(store, map_index=index, claims=[(5, "accepted")], first=10 * index, note={"plan": {"to_send": 5}})
    found = compare_with_plan(ledger, find_campaign(ledger, 1))
    assert (len(found.plans), found.counts.accepted) == (2, 10)


def test_a_run_that_finds_all_sent_has_no_plan_to_compare(store, ledger):
    """There was nothing to send."""
    tell(store, note={"plan": {"to_send": 0}})
    assert compare_with_plan(ledger, find_campaign(ledger, 1)).plans == []
