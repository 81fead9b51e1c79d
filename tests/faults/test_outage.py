from __future__ import annotations

from support.faults.arena import Arena
from support.faults.outage import PEOPLE, Case, one, run


def test_an_outage_costs_a_handful_of_requests_whatever_its_length(ledgers):
    """Gateways that are away, with whatever words: few people are unknown, nobody is texted twice or lost."""
    figures = run(ledgers, quick=True)
    assert (figures.broken, figures.cases, figures.unknown > 0) == (0, 7, True)


def test_an_outage_that_is_soon_over_is_survived_by_the_try(ledgers):
    """A try that the service answers again texts the rest itself."""
    with Arena(ledgers) as arena:
        ended = one(arena, Case("502", 30, 7, 4))
    assert (ended.error, ended.summary["not_sent"]) == (None, 0)
    assert 0 < ended.summary["unknown"] <= 6 * PEOPLE
