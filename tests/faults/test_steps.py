from __future__ import annotations

import pytest
from support.faults.arena import Arena
from support.faults.saboteur import Saboteur, sabotage
from support.faults.steps import run, sweep
from support.faults.tries import attempt
from support.faults.verdict import Figures

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Claim


def test_whatever_step_fails_the_promise_holds(ledgers):
    """Any operation broken, in any manner, once or for good: after the next try everybody is texted once or unknown."""
    figures = run(ledgers, quick=True)
    assert (figures.broken, figures.cases > 50, figures.unknown > 0) == (0, True, True)


def test_every_kind_of_operation_is_broken(ledgers):
    """A sweep breaks connecting, statements, commits, rollbacks, sending and receiving, and ends past the last one."""
    with Arena(ledgers) as arena:
        with sabotage(Saboteur(None)) as saboteur:
            ended = attempt(arena.campaign())
        hits = sweep(arena, "fails", range(len(saboteur.seen) - 12, 10**6), lasting=False, concurrency=1)
    assert ended.summary["accepted"] == 40
    assert set(saboteur.seen) >= {
        *(f"ledger {name}" for name in ("connect", "statement", "commit", "rollback")),
        *(f"http {name}" for name in ("connect", "send", "receive")),
    }
    assert (arena.figures.cases, sum(hits.values()) > 0) == (sum(hits.values()) + 1, True)


@pytest.mark.parametrize(
    ("manner", "operation", "unknown"),
    [
        ("fails", "ledger commit", 0),
        ("late", "ledger commit", 0),
        ("lost", "ledger commit", 0),
        ("lost", "http send", 4),
    ],
)
def test_an_operation_breaks_as_it_was_told(ledgers, manner, operation, unknown):
    """What is reported as failed was done or not; only a request that was written can become unknown."""
    with Arena(ledgers) as arena:
        campaign = arena.campaign()
        with sabotage(Saboteur(7, manner, only=operation)) as saboteur:
            ended = attempt(campaign)
        arena.look(campaign, ended)
        arena.resume("one", campaign)
    assert saboteur.hit == operation
    assert arena.figures == Figures(cases=1, unknown=unknown)


def test_a_sender_that_trusts_a_failed_commit_is_caught(ledgers, monkeypatch):
    """Whoever posts although the commit failed texts people without a claim, and is found out."""
    monkeypatch.setattr(CampaignLedger, "commit", trusting(CampaignLedger.commit))
    with Arena(ledgers) as arena:
        sweep(arena, "fails", range(10**6), only="ledger commit", lasting=False, concurrency=1)
    assert arena.figures.duplicates > 0


def trusting(commit):
    """Claim what it is asked for, whether or not that became durable."""

    def trusted(ledger, *, chunks=(), **arguments):
        try:
            return commit(ledger, chunks=chunks, **arguments)
        except LedgerError:
            return [Claim(10**6 + n, range(len(chunk.keys)), 1e12) for n, chunk in enumerate(chunks)]

    return trusted
