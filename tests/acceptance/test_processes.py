from __future__ import annotations

from dataclasses import replace

import pytest
from support.faults.airflow import play
from support.faults.scenarios import LOST_FIRST, SCENARIOS, TAKEN_AND_LOST
from support.versions import KEEPS_TASK_STATE

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
INTERRUPTED = ("outage", "clear_running", "task_killed", "reconcile")
PEOPLE, CHUNK, CONCURRENCY = 1000, 50, 4
# Older versions of Airflow print other things at DEBUG.
SETTINGS = {"AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG" if KEEPS_TASK_STATE else "INFO"}


def test_an_interrupted_send_texts_nobody_twice_and_prints_nobody():
    """Retried, cleared, killed by SIGKILL, or without five responses: rows add up; no log, at DEBUG, names anybody."""
    chosen = (each for each in SCENARIOS if each.dag_id in INTERRUPTED)
    scenarios = [replace(each, options=(*each.options, ("chunk_size", CHUNK))) for each in chosen]
    played, leaking = play("sqlite", scenarios, PEOPLE, settings=SETTINGS)
    figures = {each.scenario.dag_id: each.figures for each in played}
    assert {name: each.broken for name, each in figures.items()} == dict.fromkeys(INTERRUPTED, 0)
    assert {each.scenario.dag_id: each.rows for each in played} == dict.fromkeys(INTERRUPTED, PEOPLE)
    # What was in flight when the process was killed is unknown, and nothing else.
    assert 0 < figures["task_killed"].unknown <= CONCURRENCY * CHUNK
    # The balance closes the lost requests within the only try.
    assert (figures["reconcile"].unknown, played[-1].tries) == (0, 1)
    assert figures["reconcile"].reconciled == len(TAKEN_AND_LOST + LOST_FIRST) * CHUNK
    assert leaking == []
