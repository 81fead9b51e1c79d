from __future__ import annotations

from decimal import Decimal

from support.told import tell

from airflow_provider_sms.monitoring.campaigns import find_campaign
from airflow_provider_sms.monitoring.plan_comparison import run_of


def test_a_plan_is_compared_with_what_its_own_run_did(store, ledger):
    """Of a retry the first plan counts, and of a campaign of several runs the last one's requests."""
    tell(store, run_id="r1", claims=[(9, "accepted")], note={"plan": {"to_send": 9}})
    tell(store, run_id="r2", claims=[(6, "accepted")], first=10, state="failed", note={"plan": {"to_send": 10}})
    tell(store, run_id="r2", try_number=2, claims=[(4, "accepted")], first=16, note={"plan": {"to_send": 4}})
    run = run_of(ledger, find_campaign(ledger, 1)[0])
    assert ([plan["to_send"] for plan in run.plans], run.counts.accepted, run.counts.cost) == ([10], 10, Decimal(15))


def test_mapped_copies_each_have_a_plan(store, ledger):
    """Their plans are of one run, and are told together."""
    for index in (0, 1):
        tell(store, map_index=index, claims=[(5, "accepted")], first=10 * index, note={"plan": {"to_send": 5}})
    run = run_of(ledger, find_campaign(ledger, 1)[0])
    assert (len(run.plans), run.counts.accepted) == (2, 10)


def test_a_run_that_finds_all_sent_has_no_plan_to_compare(store, ledger):
    """There was nothing to be sent."""
    tell(store, note={"plan": {"to_send": 0}})
    assert run_of(ledger, find_campaign(ledger, 1)[0]).plans == []
