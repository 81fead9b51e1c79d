from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
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
from airflow_provider_sms.messages.subset import MessageSubset


def test_what_was_decided_last_counts(store):
    """A plan that was stopped may be approved later, and the other way round; all of it is kept."""
    record_approval(store, "c", PlanExtent("a1b2", None), STOP, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 10_000_000, cost=Decimal("10000000.50")), SEND, "bob")
    found = latest_approval(store, "c")
    assert found == Approval("c3d4", "send", "bob", found.decided_at, 10_000_000, Decimal("10000000.50"))
    assert found.decided_at == pytest.approx(time.time(), abs=60)
    record_approval(store, "c", PlanExtent("c3d4", None), STOP, "cid")
    assert latest_approval(store, "c")[:3] == ("c3d4", "stop", "cid")
    with store.read() as connection:
        rows = connection.execute(text("SELECT plan_id, decided_by FROM sms_approval ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("a1b2", "ann"), ("c3d4", "bob"), ("c3d4", "cid")]


def subset(*chosen):
    """Return some of the messages 0 to 9."""
    others = [each for each in range(10) if each not in chosen]
    return MessageSubset.of(np.array(chosen, np.uint64), np.array(others, np.uint64))


def test_an_approval_is_of_one_plan_and_of_its_messages_alone():
    """Fewer messages are the rest of what was approved; others, another plan, or a refusal are not."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=3, subset=subset(1, 2, 3))
    plan = PlanExtent("a1b2", 3, subset(1, 2, 3))
    assert approval.allows(plan)
    assert approval.allows(plan._replace(subset=subset(3)))
    assert not approval.allows(plan._replace(subset=subset(3, 4)))
    assert not approval.allows(plan._replace(plan_id="c3d4"))
    assert not approval._replace(decision=STOP).allows(plan)


def test_an_approval_without_its_messages_is_asked_for_again():
    """A ledger before version 8 did not record them: it is not known which people the approved messages are for."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=3)
    assert not approval.allows(PlanExtent("a1b2", 3, subset(1, 2, 3)))
    assert not approval._replace(subset=subset(1)).allows(PlanExtent("a1b2", 1))


def test_the_extent_of_a_plan_is_kept(store):
    """A question and a decision are read as they were recorded."""
    who, extent = claimant(), PlanExtent("a1b2", 9, subset(*range(9)))
    note_question(store, "c", extent, claimant_id=register(store, who))
    record_approval(store, "c", extent, SEND, "ann")
    (question,) = asked(store, who)
    assert (question.plan_id, question.messages, question.covers(extent)) == ("a1b2", 9, True)
    assert latest_approval(store, "c").allows(extent)
    assert not latest_approval(store, "c").allows(extent._replace(subset=subset(9)))


def test_a_decision_is_found_by_its_plan(store):
    """Mapped copies of a task share a campaign: what is decided about one of them says nothing of the others."""
    record_approval(store, "c", PlanExtent("a1b2", 10), SEND, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 20), SEND, "bob")
    assert latest_approval(store, "c", {"a1b2"}).decided_by == "ann"
    assert latest_approval(store, "c", {"a1b2", "c3d4"}).decided_by == "bob"
    assert (latest_approval(store, "c", {"e5f6"}), latest_approval(store, "c", set())) == (None, None)


def test_a_stop_ends_the_approvals_of_every_plan_before_it(store):
    """Another plan that is approved later does not bring them back; an approval of the plan itself does."""
    record_approval(store, "c", PlanExtent("a1b2", 10), SEND, "ann")
    record_approval(store, "c", PlanExtent("c3d4", 20), STOP, "bob")
    record_approval(store, "c", PlanExtent("e5f6", 30), SEND, "bob")
    assert latest_approval(store, "c", {"a1b2"}).decision == STOP
    assert latest_approval(store, "c", {"e5f6"}).decision == SEND
    record_approval(store, "c", PlanExtent("a1b2", 10), SEND, "ann")
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
