from __future__ import annotations

import time
from decimal import Decimal

import pytest
from sqlalchemy import text
from support.sending import claimant

from airflow_provider_sms.ledger.approvals import SEND, STOP, Approval, latest_approval, record_approval
from airflow_provider_sms.ledger.attempts import register


def test_what_was_decided_last_counts(store):
    """A plan that was stopped may be approved later, and the other way round; all of it is kept."""
    record_approval(store, "c", "a1b2", STOP, "ann")
    record_approval(store, "c", "c3d4", SEND, "bob", messages=10_000_000, cost=Decimal("10000000.50"))
    found = latest_approval(store, "c")
    assert found == Approval("c3d4", "send", "bob", found.decided_at, 10_000_000, Decimal("10000000.50"))
    assert found.decided_at == pytest.approx(time.time(), abs=60)
    record_approval(store, "c", "c3d4", STOP, "cid")
    assert latest_approval(store, "c")[:3] == ("c3d4", "stop", "cid")
    with store.read() as connection:
        rows = connection.execute(text("SELECT plan_id, decided_by FROM sms_approval ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("a1b2", "ann"), ("c3d4", "bob"), ("c3d4", "cid")]


def test_an_approval_is_of_one_plan_and_no_more_messages():
    """Fewer messages are the rest of what was approved; more, another plan, or a refusal are not."""
    approval = Approval("a1b2", SEND, "ann", 0.0, messages=100)
    assert [approval.allows("a1b2", 100), approval.allows("a1b2", 3)] == [True, True]
    assert [approval.allows("a1b2", 101), approval.allows("c3d4", 100)] == [False, False]
    assert not approval._replace(decision=STOP).allows("a1b2", 100)
    assert not approval._replace(messages=None).allows("a1b2", 1)


def test_a_decision_is_found_by_its_plan(store):
    """Mapped copies of a task share a campaign: what is decided about one of them says nothing of the others."""
    record_approval(store, "c", "a1b2", SEND, "ann", messages=10)
    record_approval(store, "c", "c3d4", SEND, "bob", messages=20)
    assert latest_approval(store, "c", {"a1b2"}).decided_by == "ann"
    assert latest_approval(store, "c", {"a1b2", "c3d4"}).decided_by == "bob"
    assert (latest_approval(store, "c", {"e5f6"}), latest_approval(store, "c", set())) == (None, None)


def test_decisions_are_of_one_campaign(store, enter):
    """Nothing was decided about another campaign, nor about one that is not there."""
    enter(campaign="other")
    record_approval(store, "c", "a1b2", SEND, "ann")
    assert (latest_approval(store, "other"), latest_approval(store, "nowhere")) == (None, None)


def test_a_campaign_is_made_by_its_first_decision_and_then_sent(store, enter):
    """A plan is approved before anything is sent; who sends finds the same campaign, and the other way round."""
    record_approval(store, "c", "a1b2", SEND, "ann", claimant_id=register(store, claimant()))
    enter()
    record_approval(store, "c", "a1b2", SEND, "ann")
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1
        assert connection.execute(text("SELECT count(DISTINCT campaign_id) FROM sms_approval")).scalar() == 1
        assert connection.execute(text("SELECT count(claimant_id) FROM sms_approval")).scalar() == 1
