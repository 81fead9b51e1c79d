"""The sizes that the project keeps to."""

from __future__ import annotations

from support.sizes import sizes

MOST = {"package": 18_000, "tests": 32_000, "benchmarks, demo": 1_500, "pages": 3_600}
"""Lines, on the way to the budgets that ``make sizes`` prints."""


def test_the_project_does_not_grow_again():
    """Package, tests and pages are at most so large."""
    lines = {name: today for name, today, _ in sizes() if name in MOST}
    assert {name: lines[name] for name in MOST if lines[name] > MOST[name]} == {}
