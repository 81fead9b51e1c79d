from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select
from support.sending import claimant, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED, Account, KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import UNKNOWN, Outcome
from airflow_provider_sms.ledger.request_queries import named_requests
from airflow_provider_sms.ledger.schema import balance
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sending import settle
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.evidence import Verdict
from airflow_provider_sms.sending.request_batch import RequestBatch
from airflow_provider_sms.sending.settle import LostRequests, Reconciliation
from airflow_provider_sms.sending.stop_conditions import Caution
from airflow_provider_sms.service.responses import Balance

KEY = "0" * 32


@pytest.fixture
def sums(store):
    """A reconciliation of a pre-paid account."""

    def sums(*, post_paid=False):
        balance = Balance(Decimal(1000000 if post_paid else 900), post_paid)
        return Reconciliation(store, "c", KEY, lambda: balance)

    return sums


def readings(store):
    with store.read() as connection:
        return list(connection.execute(select(balance.c.amount)).scalars())


def test_a_balance_that_is_read_is_recorded(sums, store):
    """Whoever reads it, since a reading from before a request tells as much as one from after it."""
    sums().observe()
    sums().weigh([1])
    assert readings(store) == ["900", "900"]


def test_the_balance_of_a_post_paid_account_decides_nothing(sums, store):
    """It is always the same, whatever was taken: no balance is waited for, and no task holds its claims."""
    request, account = lose(store, Account(KEY, Prices().of_request)), sums(post_paid=True)
    (verdict,) = account.weigh([request]).values()
    assert (verdict.outcome, verdict.settles_at, account.in_doubt()) == (UNDECIDED, None, None)
    assert "post-paid" in verdict.words


def test_a_request_that_has_an_outcome_by_then_is_not_told_of(sums, monkeypatch):
    """The ledger closed nothing, since a person or a late response was faster."""
    monkeypatch.setattr(settle, "weigh", lambda *_: {1: Verdict(CHARGED, "")})
    monkeypatch.setattr(settle, "close_by_balance", lambda *_: {})
    assert sums().close([1]) == {}


class LookedUp:
    """Messages that are looked up again, where the ledger can be read."""

    def __init__(self, error=None):
        self.messages = []
        self.error = error

    def reconcile(self, messages, *, turned_away=False):
        if self.error is not None:
            raise self.error
        self.messages += messages


def test_what_is_left_open_and_cannot_be_looked_up_is_unknown():
    """No message goes uncounted because the ledger could not be read just then."""
    counts = SendCounts()
    lost = LostRequests(Judged(UNDECIDED), counts, Caution())
    lost.adopt(7, people(1))
    with pytest.raises(LedgerError):
        lost.settle(LookedUp(LedgerError("away")))
    assert (counts.unknown, counts.unknown_requests, lost.any, lost.adopts(7)) == (1, {7}, False, False)


class Judged:
    """A reconciliation whose balance shows the same of every request."""

    def __init__(self, outcome):
        self.verdict = Verdict(outcome, "as the balance shows")

    def now(self):
        return 0.0

    def close(self, request_ids):
        return dict.fromkeys(request_ids, self.verdict)


@pytest.mark.parametrize(("verdict", "requests"), [(CHARGED, 1), (NOT_CHARGED, 0)])
def test_a_request_of_an_earlier_leg_that_was_not_charged_counts_no_more(verdict, requests):
    """As one of this leg: a request of the attempt was accepted, or is unknown."""
    counts = SendCounts()
    counts.replay_lost(7, 1)
    lost = LostRequests(Judged(verdict), counts, Caution())
    mine, others = people(2)
    lost.adopt(7, [mine])
    lost.adopt(8, [others])
    lost.settle(LookedUp())
    assert (counts.requests, lost.any) == (requests, False)


def lose(store, account=None):
    """Lose the response to a request."""
    ledger = CampaignLedger(store, "c", claimant(), account=account)
    (claim,) = ledger.commit(chunks=[RequestBatch(people(1), {}).chunk], claim_seconds=60.0)
    ledger.finish([Outcome(claim.request_id, UNKNOWN, reason="lost")])
    return claim.request_id


@pytest.mark.parametrize("post_paid", [False, True], ids=["pre-paid", "post-paid"])
def test_another_account_takes_back_nothing_that_the_balance_told(sums, store, post_paid):
    """A task with another connection, or a new token, knows nothing: the words that warn a person stay."""
    request = lose(store, Account("1" * 32, Prices().of_request))
    told = KeptEvidence(CHARGED, "It was taken.", 1.0)
    note_evidence(store, "c", {request: told})
    sums(post_paid=post_paid).show([request])
    sums(post_paid=post_paid).close([request])
    assert named_requests(store, [request])[0].evidence == told
