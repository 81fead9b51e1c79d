from __future__ import annotations

import pendulum
import pytest
from support.pages import ROOT, blocks

from airflow_provider_sms.operators.sms import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow
from airflow_provider_sms.reporting.summary import COUNTS

DAG_ID, TASK_ID = "example_sms_controls", "text_customers"
PAGE = ROOT / "docs" / "before-sending.md"


@pytest.fixture
def run_controls(run_example):
    """Run the example, at whatever hour this is."""

    def open_all_day(dag):
        dag.get_task(TASK_ID).send_window = SendWindow("00:00", "24:00", "UTC")

    return lambda **params: run_example(DAG_ID, pendulum.now("UTC"), change=open_all_day, **params)


def counts(ran):
    summary = ran.xcoms[TASK_ID]["return_value"]
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


def test_the_plan_on_the_page_is_the_examples(run_controls, sandbox, bag):
    """The page shows the plan as the log has it, what is planned is what happens, and a second run texts nobody."""
    assert bag.dags[DAG_ID].get_task(TASK_ID).send_window == SOUTH_AFRICAN_DIRECT_MARKETING
    ran = run_controls()
    plan, summary = ran.xcoms[TASK_ID]["plan"], ran.xcoms[TASK_ID]["return_value"]
    (table,) = (block.code for block in blocks(PAGE, "text") if "] Plan " in block.code)
    for line in table.splitlines():
        assert line.removeprefix("[info     ] ").strip() in ran.log
    assert ran.state == "success"
    assert counts(ran) == {"accepted": plan["to_send"], "invalid": 20, "duplicate": plan["duplicate"], "suppressed": 3}
    assert (summary["parts"], summary["cost"], summary["requests"]) == (plan["parts"], plan["cost"], plan["requests"])
    texted = {each.destination for each in sandbox.state.accepted}
    assert {"27820000363", "27820000125", "27720000530"} & texted == set()
    again = counts(run_controls())
    assert (again["already_sent"], again.get("accepted", 0)) == (plan["to_send"], 0)
    assert len(sandbox.state.accepted) == plan["to_send"]
