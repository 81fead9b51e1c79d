from __future__ import annotations

from support.faults.airflow import play
from support.faults.scenarios import SCENARIOS

ASKING = [each for each in SCENARIOS if dict(each.options).get("on_unknown") == "ask"]
PEOPLE = 400
UNKNOWN = {"ask_resend": 0, "ask_sent": 0, "ask_cleared": 100}
"""How many messages are unknown in the end: nobody decides them where the task is left to fail."""


def test_a_person_decides_in_a_real_airflow():
    """Answers through Airflow's API, read by its own triggerer, text nobody twice and lose nobody."""
    played, leaking = play("sqlite", ASKING, PEOPLE)
    assert [(each.rows, each.figures.broken) for each in played] == [(PEOPLE, 0)] * len(UNKNOWN)
    assert {each.scenario.dag_id: each.figures.unknown for each in played} == UNKNOWN
    assert leaking == []
