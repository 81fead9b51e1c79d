from __future__ import annotations

from support.faults import pairs


def test_live_senders_of_one_campaign_text_everybody_exactly_once(ledgers, capfd):
    """Threads, processes and mapped tasks whose parts overlap leave nobody out, and nothing is unknown."""
    figures = pairs.run(ledgers, quick=True)
    assert (figures.cases, figures.broken, figures.unknown, capfd.readouterr().err) == (40, 0, 0, "")
