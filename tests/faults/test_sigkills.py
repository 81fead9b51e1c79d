from __future__ import annotations

from support.faults import sigkills


def test_processes_killed_at_any_instant_text_nobody_twice_and_lose_nobody(ledgers):
    """After SIGKILL, and SIGKILL of the one that came after, the next try finds all that was claimed."""
    figures = sigkills.run(ledgers, quick=True)
    assert (figures.cases >= 5, figures.broken) == (True, 0)
