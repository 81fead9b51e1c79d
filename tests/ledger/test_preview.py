from __future__ import annotations

import pytest
from support.keys import request_of
from support.sending import claimant, people

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Outcome
from airflow_provider_sms.ledger.preview import CampaignPreview
from airflow_provider_sms.messages.spool import Status

WEEK = 7 * 86400.0


@pytest.fixture
def hold():
    def hold(ledger, them, state=None, **fields):
        chunk = request_of([m.key for m in them], [m.destination for m in them])
        (claim,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
        if state is not None:
            ledger.commit(outcomes=[Outcome(claim.request_id, state, **fields)])

    return hold


def test_a_look_says_what_is_not_free(store, enter, hold):
    """What was sent, and what may have been or is under way; of this campaign only, and without a trace."""
    messages = people(5)
    hold(enter(), messages[:1], ACCEPTED)
    hold(enter(), messages[1:2], UNKNOWN)
    hold(enter(), messages[2:3])
    hold(enter(campaign="other"), messages[3:4], ACCEPTED)
    look = CampaignPreview(store, "c", who=claimant())
    held = look.held([m.key for m in messages])
    states = (Status.ALREADY_SENT, Status.UNKNOWN, Status.UNKNOWN)
    assert held == dict(zip([m.key for m in messages], states, strict=False))


def test_a_new_campaign_holds_nothing(store, enter):
    """Then nothing is looked up; the look makes no campaign."""
    enter()
    for name in ("c", "never seen"):
        look = CampaignPreview(store, name, who=claimant())
        assert look.held([people(1)[0].key]) == {}


def test_what_is_sent_again_is_free(store, enter, hold):
    """Where unknown messages are resent, they are part of the plan."""
    messages = people(2)
    hold(enter(), messages[:1], ACCEPTED)
    hold(enter(), messages[1:], UNKNOWN)
    look = CampaignPreview(store, "c", who=claimant(), resends=True)
    assert look.held([m.key for m in messages]) == {messages[0].key: Status.ALREADY_SENT, messages[1].key: Status.AGAIN}
