from __future__ import annotations

import gc

import pytest
from support.faults import parts
from support.faults.arena import Arena
from support.faults.verdict import Figures

from airflow_provider_sms.ledger import claims


# Of a connection that is gone psycopg's server cursors cannot be closed, by anybody.
@pytest.mark.filterwarnings("ignore:<psycopg.ServerCursor object:ResourceWarning")
def test_whatever_befalls_a_try_that_waits_the_promise_holds(ledgers):
    """Broken, killed, hung or started twice, before, in and after its waits: everybody is texted once or unknown."""
    figures = parts.run(ledgers, quick=True)
    gc.collect()
    assert (figures.broken, figures.cases >= 15, figures.unknown > 0) == (0, True, True)


def test_a_try_of_three_parts_tells_of_all_of_them(ledgers):
    """It waits once for its hours and once for credit, and its last summary is that of one that never waited."""
    with Arena(ledgers) as arena:
        campaign = arena.campaign()
        ended = parts.Whole(arena)(campaign, concurrency=2)
        arena.look(campaign, ended)
        arena.resume("whole", campaign)
    summary = ended.summary
    assert (summary["accepted"], summary["requests"], summary["not_sent"]) == (40, 10, 0)
    assert arena.figures == Figures(cases=1)


@pytest.mark.parametrize(("place", "accepted"), [(0, 12), (1, 20), (2, 40)])
def test_each_part_goes_on_where_the_one_before_it_stopped(ledgers, place, accepted):
    """The counts so far are of this part and of all before it."""
    with Arena(ledgers) as arena:
        campaign, whole = arena.campaign(), parts.Whole(arena)
        for halts in parts.PARTS[: place + 1]:
            ended = whole.part(campaign, halts)
    assert (ended.summary["accepted"], ended.summary["not_sent"]) == (accepted, 40 - accepted)
    assert ended.halted == (place < 2)


def test_a_part_that_forgets_the_one_before_it_is_caught(ledgers, monkeypatch):
    """Whoever calls what the same try sent another's tells less than it sent, and is found out."""
    every = claims.processes_of_try
    monkeypatch.setattr(claims, "processes_of_try", lambda store, who, own: {own: every(store, who, own)[own]})
    with Arena(ledgers) as arena:
        campaign = arena.campaign()
        arena.look(campaign, parts.Whole(arena)(campaign))
        arena.resume("forgetting", campaign)
    assert arena.figures.lost > 0
