from __future__ import annotations

import json

from support.pages import ROOT, blocks, dags

README = ROOT / "README.md"


def test_the_first_dag_does_what_is_said_of_it(run_file, sandbox):
    """The README's DAG texts two people, returns what the README shows, and texts nobody when it runs again."""
    (dag,) = dags(README)
    (shown,) = (json.loads(block.code) for block in blocks(README, "json"))
    changing = {"event_ids": [], "remaining_balance": 0}
    assert {**shown, **changing} == {**run_file(dag).xcoms["text_them"], **changing}
    assert {
        ("27820000001", "Hi Thandeka, R1250.50 is due. Paid already? Thank you."),
        ("27830000002", "Hi Pieter, R89.90 is due. Paid already? Thank you."),
    } == set(sandbox.state.accepted_messages)
    assert run_file(dag).xcoms["text_them"]["already_sent"] == 2
    assert len(sandbox.state.accepted) == 2
