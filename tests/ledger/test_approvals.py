from __future__ import annotations

import time
from decimal import Decimal

import pytest
from sqlalchemy import text
from support.sending import claimant

from airflow_provider_sms.ledger.approvals import (
    SEND,
    STOP,
    Approval,
    PlanExtent,
    asked,
    latest_approval,
    note_question,
    record_approval,
)
from airflow_provider_sms.ledger.attempts import register


def test_what_was_decided_last_counts(store):
    """A plan that was stopped may be approved later, and the other way round; all of it is kept."""
    record_approval(store, "c", PlanExtent("a1b2", None), STOP, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 10_000_000), SEND, "bob", cost=Decimal("10000000.50"))
    found = latest_approval(store, "c")
    assert found == Approval("c3d4", "send", "bob", found.decided_at, 10_000_000, Decimal("10000000.50"))
    assert found.decided_at == pytest.approx(time.time(), abs=60)
    record_approval(store, "c", PlanExtent("c3d4", None), STOP, "cid")
    assert latest_approval(store, "c")[:3] == ("c3d4", "stop", "cid")
    with store.read() as connection:
        rows = connection.execute(text("SELECT plan_id, decided_by FROM sms_approval ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("a1b2", "ann"), ("c3d4", "bob"), ("c3d4", "cid")]


def test_an_approval_is_of_one_plan_and_no_more_messages():
    """Fewer messages are the rest of what was approved; more, another plan, or a refusal are not."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=100, withheld=10)
    plan = PlanExtent("a1b2", 100, 10)
    assert approval.allows(plan)
    assert approval.allows(plan._replace(messages=3))
    assert not approval.allows(plan._replace(messages=101))
    assert not approval.allows(plan._replace(plan_id="c3d4"))
    assert not approval._replace(decision=STOP).allows(plan)
    assert not approval._replace(messages=None).allows(plan._replace(messages=1))


def test_an_approval_is_of_nobody_who_was_withheld():
    """As messages are sent, fewer are left to send: people who were left out would fit into the approved number."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=100, withheld=10)
    assert not approval.allows(PlanExtent("a1b2", 10, 0))
    assert not approval.allows(PlanExtent("a1b2", 1, 9))
    assert approval.allows(PlanExtent("a1b2", 90, 20))


def test_an_approval_without_the_number_withheld_is_asked_for_again():
    """A ledger before version 8 did not record it: it is not known which people the approved messages are for."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=100)
    assert not approval.allows(PlanExtent("a1b2", 100, 10))
    assert not approval.allows(PlanExtent("a1b2", 99, 10))


def test_the_extent_of_a_plan_is_kept(store):
    """A question and a decision are read as they were recorded."""
    who, extent = claimant(), PlanExtent("a1b2", 100, 10)
    note_question(store, "c", extent, claimant_id=register(store, who))
    record_approval(store, "c", extent, SEND, "ann")
    assert asked(store, who) == [extent]
    assert latest_approval(store, "c").allows(extent)
    assert not latest_approval(store, "c").allows(extent._replace(withheld=9))


def test_a_decision_is_found_by_its_plan(store):
    """Mapped copies of a task share a campaign: what is decided about one of them says nothing of the others."""
    record_approval(store, "c", PlanExtent("a1b2", 10), SEND, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 20), SEND, "bob")
    assert latest_approval(store, "c", {"a1b2"}).decided_by == "ann"
    assert latest_approval(store, "c", {"a1b2", "c3d4"}).decided_by == "bob"
    assert (latest_approval(store, "c", {"e5f6"}), latest_approval(store, "c", set())) == (None, None)


def test_a_stop_ends_the_approvals_of_every_plan_before_it(store):
    """Another plan that is approved later does not bring them back; an approval of the plan itself does."""
    record_approval(store, "c", PlanExtent("a1b2", 10, 0), SEND, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 20, 0), STOP, "bob")
    record_approval(store, "c", PlanExtent("e5f6", 30, 0), SEND, "bob")
    assert latest_approval(store, "c", {"a1b2"}).decision == STOP
    assert latest_approval(store, "c", {"e5f6"}).decision == SEND
    record_approval(store, "c", PlanExtent("a1b2", 10, 0), SEND, "ann")
    assert latest_approval(store, "c", {"a1b2"}).decision == SEND


def test_decisions_are_of_one_campaign(store, enter):
    """Nothing was decided about another campaign, nor about one that is not there."""
    enter(campaign="other")
    record_approval(store, "c", PlanExtent("a1b2", None), SEND, "ann")
    assert (latest_approval(store, "other"), latest_approval(store, "nowhere")) == (None, None)


def test_a_campaign_is_made_by_its_first_decision_and_then_sent(store, enter):
    """A plan is approved before anything is sent; who sends finds the same campaign, and the other way round."""
    record_approval(store, "c", PlanExtent("a1b2", None), SEND, "ann", claimant_id=register(store, claimant()))
    enter()
    record_approval(store, "c", PlanExtent("a1b2", None), SEND, "ann")
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1
        assert connection.execute(text("SELECT count(DISTINCT campaign_id) FROM sms_approval")).scalar() == 1
        assert connection.execute(text("SELECT count(claimant_id) FROM sms_approval")).scalar() == 1
