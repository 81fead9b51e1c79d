from __future__ import annotations

import time
from decimal import Decimal

import pytest
from support.keys import request_of
from support.reported import counts
from support.sending import accept, claim, close, people

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.decisions import close_by_balance
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, UNKNOWN
from airflow_provider_sms.ledger.requests import unknown_requests
from airflow_provider_sms.monitoring.counts import Counts, counts_of


@pytest.fixture
def clock():
    """The time of the world: a claim that these tests make is open."""
    return time.time


def test_a_claim_past_its_deadline_counts_as_unknown(store, enter):
    """What a dead process left behind is unknown, and why is said, though nobody has written it down."""
    claim(enter(clock=lambda: 1_000_000.0), people(2))
    assert counts(store) == Counts(unknown=2, of_unknown_cost=1, unknown_requests=1)
    (row,) = unknown_requests(store)
    assert (row.messages, row.state, row.reason, row.claimed_at) == (2, UNKNOWN, LAPSED, 1_000_000.0)


def test_counts_of_several_campaigns_are_kept_apart(store, enter):
    """By id; what the service left out, and what is not done yet, is not accepted."""
    accept(enter(), people(3))
    other = enter(campaign="other")
    close(other, claim(other, people(5)), messages=4, parts=4, cost="4.40")
    claim(other, people(2, 10))
    with store.read() as connection:
        found = counts_of(connection, [1, 2, 3], store.clock())
    assert found[1] == Counts(accepted=3, parts=3, cost=Decimal("1.10"))
    assert found[2] == Counts(accepted=4, under_way=2, parts=4, cost=Decimal("4.40"), left_out=1)
    assert found[3] == Counts()


def test_what_the_balance_told_is_in_all_sums(store, enter):
    """Its SMS parts and its cost, and the messages that the request holds."""
    ledger = enter()
    accept(ledger, people(3))
    lost = people(2, 10)
    chunk = request_of([each.key for each in lost], [each.destination for each in lost], parts=[2, 2])
    (claimed,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
    close(ledger, claimed.request_id, UNKNOWN)
    proof = KeptEvidence("charged", "It was taken.", 1.0, amount="4.4")
    close_by_balance(store, "c", {claimed.request_id: (ACCEPTED, proof)})
    assert counts(store) == Counts(accepted=5, parts=7, cost=Decimal("5.50"))
