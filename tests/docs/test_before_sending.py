from __future__ import annotations

import re

import pandas as pd
import pytest
from support.pages import ROOT, blocks, dags

from airflow_provider_sms.operators.sms import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow

PAGE = ROOT / "docs" / "before-sending.md"


def dag(dag_id):
    """Give the page's DAG of that name."""
    (found,) = (code for code in dags(PAGE) if f'DAG("{dag_id}"' in code)
    return found


@pytest.fixture
def table(tmp_path):
    """Write a table of people where the page's DAGs look for it."""

    def table(name, count, **columns):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        numbers = [str(27_820_000_000 + n) for n in range(count)]
        people = {"destination": numbers, "first_name": [f"Name{n}" for n in range(count)], **columns}
        pd.DataFrame(people).to_parquet(path)

    return table


@pytest.mark.parametrize(
    ("names", "state", "sent"), [("Name", "success", 3), ("N\N{RIGHT SINGLE QUOTATION MARK}" * 40, "failed", 0)]
)
def test_the_limits_stop_a_text_that_is_too_long(run_file, sandbox, table, names, state, sent):
    """What is within the limits goes out, what is beyond does not."""
    table("subscribers.parquet", 3, first_name=[names] * 3)
    assert (run_file(dag("newsletter")).state, len(sandbox.state.accepted)) == (state, sent)


def test_whoever_is_on_a_list_or_in_a_report_is_left_out(run_file, sandbox, table):
    """Both kinds of list are read."""
    table("offers.parquet", 10, offer=["Tea"] * 10)
    table("opt-outs.parquet", 2)
    table("reports/reminders.parquet", 4)
    ran = run_file(dag("offers_without_opt_outs"))
    assert (ran.xcoms["text"]["accepted"], ran.xcoms["text"]["suppressed"]) == (6, 4)
    assert len(sandbox.state.accepted) == 6


def test_the_window_of_the_page_is_the_one_that_has_a_name():
    """What the page says of South Africa's window is how it is made, and a date is added as it says."""
    (shown,) = re.findall(r"send_window=(SendWindow\(.*?^        \)),$", dag("offers"), re.MULTILINE | re.DOTALL)
    assert eval(shown, {"SendWindow": SendWindow}) == SOUTH_AFRICAN_DIRECT_MARKETING
    (added,) = (block.code for block in blocks(PAGE, "python") if "replace(" in block.code)
    names = {}
    exec(added, names)
    assert "2026-11-04" in str(names["hours"].holidays[1])
