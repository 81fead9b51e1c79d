from __future__ import annotations

import sys

import pytest
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

OPERATORS = {
    "bulk": lambda: BulkSmsOperator(
        task_id="send", source=[{"destination": "27820000001"}], message="Hi", on_unknown="ask"
    ),
    "group": lambda: GroupSmsOperator(task_id="send", message="Hi", groups=["staff"], on_unknown="ask"),
}


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_an_airflow_that_cannot_ask_says_so_at_the_start(sms_default, ledger_path, sandbox, monkeypatch, make):
    """Before anything is sent, the error names the version that can, and no retry is spent on it."""
    # An Airflow that can ask is made one that cannot; one that cannot has no such module.
    monkeypatch.setitem(sys.modules, "airflow.sdk.execution_time.hitl", None)
    ran = run_task(make, retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert "on_unknown='ask' needs Airflow 3.1 or newer" in ran.log
