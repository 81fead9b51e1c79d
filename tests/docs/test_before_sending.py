from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import pandas as pd
import pytest
from support.pages import ROOT, blocks

from airflow_provider_sms.operators.sms import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow

PAGE = ROOT / "docs" / "before-sending.md"
DAG = """
from airflow.sdk import DAG

from airflow_provider_sms.operators.sms import BulkSmsOperator, Limits

with DAG("page", schedule=None):
    BulkSmsOperator(task_id="text", default_region="ZA", on_invalid="skip", {arguments})
"""


def shown(name):
    """Return the page's first block that gives an argument a value."""
    return next(block.code for block in blocks(PAGE, "python") if block.code.startswith(f"{name} = "))


def dag(name, **arguments):
    """Return a DAG with the page's value of an argument, and with others."""
    value = shown(name).partition(" = ")[2].partition("  #")[0].strip()
    told = [f"{other}={value!r}" for other, value in arguments.items()]
    return DAG.format(arguments=", ".join([f"{name}={value}", *told]))


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
    ran = run_file(dag("limits", source="/data/subscribers.parquet", message="Hi {first_name}"))
    assert (ran.state, len(sandbox.state.accepted)) == (state, sent)


def test_whoever_is_on_a_list_or_in_a_report_is_left_out(run_file, sandbox, table):
    """Both kinds of list are read."""
    table("offers.parquet", 10)
    table("opt-outs.parquet", 2)
    table("reports/reminders.parquet", 4)
    ran = run_file(dag("suppress", source="/data/offers.parquet", message="Tea"))
    assert (ran.xcoms["text"]["accepted"], ran.xcoms["text"]["suppressed"]) == (6, 4)
    assert len(sandbox.state.accepted) == 6


def test_the_window_of_the_page_is_the_one_that_has_a_name():
    """What the page says of South Africa's window is how it is made, and a date is added as it says."""
    names = {"SendWindow": SendWindow, "replace": replace, "date": date}
    exec(shown("send_window"), names)
    assert names["send_window"] == SOUTH_AFRICAN_DIRECT_MARKETING
    (added,) = re.findall(r"`dataclasses\.(replace\(.*\))`", PAGE.read_text())
    hours = eval(added, {**names, "SOUTH_AFRICAN_DIRECT_MARKETING": SOUTH_AFRICAN_DIRECT_MARKETING})
    assert "2026-11-04" in str(hours.holidays[1])
