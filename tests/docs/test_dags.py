"""DAGs and values of the pages do what the pages say of them, beside the first ones, which ``acceptance/`` runs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from types import SimpleNamespace

import pandas as pd
import pytest
from support.pages import ROOT, blocks

from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.sms import SOUTH_AFRICAN_DIRECT_MARKETING, Limits, SendWindow

PAGE, CLASSES = ROOT / "docs" / "before-sending.md", ROOT / "docs" / "other-classes.md"
TEXT = CLASSES.read_text()


def dag(page, words):
    """Return the first DAG of a page that contains some words."""
    return next(block.code for block in blocks(ROOT / "docs" / page) if block.is_dag and words in block.code)


def people(count, **columns):
    numbers = [str(27_820_000_000 + n) for n in range(count)]
    return pd.DataFrame({"destination": numbers, "first_name": [f"Name{n}" for n in range(count)], **columns})


def test_the_values_of_the_page_can_be_given():
    """Limits are some, South Africa's window is the one that has a name, and a date is added to it as the page says."""
    names = {"Limits": Limits, "SendWindow": SendWindow, "replace": replace, "date": date}
    for code in (block.code for block in blocks(PAGE, "python")):
        if code.startswith(("limits = ", "send_window = ")):
            exec(code, names)
    assert isinstance(names["limits"], Limits)
    assert names["send_window"] == SOUTH_AFRICAN_DIRECT_MARKETING
    (added,) = re.findall(r"`dataclasses\.(replace\(.*\))`", PAGE.read_text())
    hours = eval(added, {**names, "SOUTH_AFRICAN_DIRECT_MARKETING": SOUTH_AFRICAN_DIRECT_MARKETING})
    assert "2026-11-04" in str(hours.holidays[1])


def test_a_large_table_is_planned_sent_and_reported(run_file, sandbox, tmp_path):
    """The quickstart's third DAG leaves out opt-outs and bad numbers; its report has the outcome of each row."""
    rows = [{"customer_id": n, "mobile": f"082{n:07d}", "first_name": f"Name{n}"} for n in range(1, 301)]
    rows[7]["mobile"] = "none"
    pd.DataFrame(rows).to_parquet(tmp_path / "customers.parquet")
    pd.DataFrame(rows[:4]).to_parquet(tmp_path / "opt-outs.parquet")
    large = dag("quickstart.md", "text_customers")
    assert run_file(large).xcoms["text_them"]["not_sent"] == 295
    assert sandbox.state.accepted == []
    # The line that the page tells a reader to delete.
    told = run_file(re.sub(r"^.*dry_run=True.*\n", "", large, flags=re.MULTILINE)).xcoms["text_them"]
    assert (told["accepted"], told["suppressed"], told["invalid"]) == (295, 4, 1)
    report = pd.read_parquet(told["report"])
    assert report["status"].value_counts().to_dict() == {"accepted": 295, "suppressed": 4, "invalid": 1}


def test_the_decorator_texts_whom_its_function_finds(run_file, sandbox, tmp_path):
    """Those with a confirmed appointment, in their own words."""
    booked = {
        "mobile": ["082 000 0001", "+27 83 000 0002"],
        "first_name": ["Thandeka", "Pieter"],
        "time": ["09:00", "10:30"],
        "confirmed": [True, False],
    }
    (tmp_path / "appointments").mkdir()
    today = datetime.now(timezone.utc).date()
    for day in (today, today + timedelta(days=1)):  # it may be midnight before the task runs
        pd.DataFrame(booked).to_parquet(tmp_path / "appointments" / f"{day}.parquet")
    ran = run_file(dag("other-classes.md", "@task.bulk_sms"))
    assert (ran.state, ran.xcoms["remind"]["accepted"]) == ("success", 1)
    assert sandbox.state.accepted_messages == [("27820000001", "Hi Thandeka, we see you at 09:00.")]


def test_the_notifier_texts_who_is_on_call(run_file, sandbox, monkeypatch):
    """Both people get the text of the page, in one request; with a text of one's own, it has the task and its error."""
    (numbers,) = re.findall(r"^If the variable `sms_on_call` is `([^`]+)`", TEXT, re.MULTILINE)
    monkeypatch.setenv("AIRFLOW_VAR_SMS_ON_CALL", numbers)
    (shown,) = (
        block.code for block in blocks(CLASSES, "text") if block.code.startswith("Airflow: nightly.load failed")
    )
    ran = run_file(dag("other-classes.md", "on_failure_callback"))
    texts = sandbox.state.accepted_messages
    assert (ran.state, [number for number, _ in texts]) == ("failed", ["27820000001", "27830000002"])
    assert {text.partition(", run ")[0] for _, text in texts} == {shown.partition(", run ")[0]}
    assert [request.operation for request in sandbox.state.requests] == ["bulk"]

    (code,) = (block.code for block in blocks(CLASSES, "python") if block.code.startswith("SmsNotifier("))
    notifier = eval(code, {"SmsNotifier": SmsNotifier})
    notifier({"dag": None, "ti": SimpleNamespace(task_id="load"), "exception": RuntimeError("the file is not there")})
    assert {text for _, text in sandbox.state.accepted_messages[2:]} == {"load failed: the file is not there"}


@pytest.fixture
def told(monkeypatch):
    """What a DAG's callback posts to a chat."""
    import requests

    said = []
    monkeypatch.setattr(requests, "post", lambda url, json, timeout: said.append(json["text"]))
    return said


def test_a_task_reads_who_got_no_text_and_an_alert_costs_no_credit(run_file, sandbox, tmp_path, told):
    """Where the credit ends half-way, the page's DAG writes down who got none, and why, and tells a chat."""
    table = people(150, invoice=[f"INV-{n}" for n in range(150)])
    table.to_parquet(tmp_path / "overdue.parquet")
    sandbox.state.set_balance(100)
    ran = run_file(
        dag("operators.md", 'DAG("remind_and_look"').replace("report=REPORT", "report=REPORT, concurrency=1")
    )
    assert ran.state == "success"
    rest = pd.read_parquet(tmp_path / "not_texted.parquet")
    texted = {number for number, _ in sandbox.state.accepted_messages}
    assert set(rest["destination"]) == set(table["destination"]) - texted
    assert (len(texted), set(rest["status"])) == (100, {"not_sent"})
    assert rest["reason"].notna().all()
    assert [said.partition(": ")[0] for said in told] == ["text_them failed"]
