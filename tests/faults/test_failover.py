from __future__ import annotations

import pytest
from support.faults.failover import Case, play, run


@pytest.mark.parametrize("case", [Case(synchronous=False), Case(synchronous=True, zombie=True)], ids=str)
def test_nobody_is_texted_twice_by_a_failover(case, capfd):
    """A ledger that has lost commits is noticed; one that waits for its standby has lost none."""
    figures = play(case, 1)
    assert (figures.cases, figures.broken, capfd.readouterr().err) == (1, 0, "")
    assert bool(figures.unknown) is not case.synchronous


def test_a_case_without_its_pooler_is_named(monkeypatch, capfd):
    """What is not played is said, so that nobody takes it for played."""
    monkeypatch.setattr("support.faults.failover.pooler", lambda: None)
    figures = run(None, quick=True, cases=[Case(synchronous=True, pooler=True)])
    assert (figures.cases, "not played" in capfd.readouterr().err) == (0, True)
