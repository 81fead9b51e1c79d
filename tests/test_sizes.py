"""The sizes that the project keeps to."""

from __future__ import annotations

from support.sizes import TOTALS, sizes


def test_the_project_does_not_grow_again():
    """Package, tests and pages are at most so large."""
    lines = {name: today for name, today, _ in sizes() if name in TOTALS}
    assert {name: lines[name] for name in TOTALS if lines[name] > TOTALS[name]} == {}
