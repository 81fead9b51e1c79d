from __future__ import annotations

import pytest
from support.faults.arena import Arena
from support.faults.kills import one, run
from support.faults.points import POINTS
from support.faults.verdict import Figures


def test_whenever_a_try_ends_the_promise_holds(ledgers):
    """Killed, hung, or broken by an error at any point: after the next try everybody is texted once or unknown."""
    figures = run(ledgers, quick=True)
    # At most the one request in flight is unknown; its successor knows of it.
    assert (figures.broken, figures.cases > 30, figures.unknown <= 4 * figures.cases) == (0, True, True)


def test_there_are_points_enough():
    """A send has a point before, within and after each of its transactions, its request and its answer."""
    assert len(POINTS) >= 12


def test_a_process_that_hung_corrects_what_was_called_unknown(ledgers):
    """Its successor calls the request unknown and texts the others; its late answer makes it accepted."""
    with Arena(ledgers) as arena:
        one(arena, "hung", "sent", 1)
    assert arena.figures == Figures(cases=1)


@pytest.mark.parametrize(("point", "unknown"), [("claim inserted", 0), ("claim committed", 4), ("sent", 4)])
def test_a_killed_process_leaves_unknown_what_it_may_have_posted(ledgers, point, unknown):
    """A claim that did not become durable binds nobody; one that did is unknown, posted or not."""
    with Arena(ledgers) as arena:
        one(arena, "killed", point, 1)
    assert arena.figures == Figures(cases=1, unknown=unknown)
