from __future__ import annotations

from dataclasses import replace

from support.faults.airflow import play
from support.faults.scenarios import LOST_FIRST, SCENARIOS, TAKEN_AND_LOST

PEOPLE, CHUNK = 1000, 100


def test_the_balance_closes_lost_requests_in_a_real_airflow():
    """Five of ten responses are lost: the task succeeds in one attempt, asks nobody, and leaves nobody unknown."""
    (reconciling,) = (each for each in SCENARIOS if each.dag_id == "reconcile")
    options = (*reconciling.options, ("chunk_size", CHUNK))
    (played,), leaking = play("sqlite", [replace(reconciling, options=options)], PEOPLE)
    assert (played.tries, played.rows) == (1, PEOPLE)
    assert (played.figures.broken, played.figures.unknown) == (0, 0)
    assert played.figures.reconciled == (len(TAKEN_AND_LOST) + len(LOST_FIRST)) * CHUNK
    assert leaking == []
