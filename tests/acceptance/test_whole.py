from __future__ import annotations

import re

import pyarrow.parquet as pq
import pytest
from support.whole import BOUGHT, NEEDED, ON_CALL


def test_every_example_ends_as_it_says(whole):
    """All succeed, but for the one that shows what happens when a task fails."""
    assert {dag_id for dag_id, state in whole.states.items() if state != "success"} == {
        "example_sms_alert",
        "example_sms_approval changed",
    }
    assert len(whole.taken) > 1500


def test_a_plan_is_sent_once_it_is_approved_and_no_other_plan_is(whole):
    """Nothing is sent before a person answers, or once refused or changed; a plan below the bound needs no answer."""
    assert whole.unapproved == {"once": 0, "refused": 0, "changed": 0}
    assert {run: sent > 1000 for run, sent in whole.approved.items() if sent} == {"once": True, "cheap": True}


@pytest.mark.parametrize(
    ("says", "text"),
    [
        ("failed", r"Airflow: example_sms_alert\.count_invoices failed, try .*, run once"),
        ("missed", r"Airflow: DAG waits missed its deadline of .*"),
    ],
)
def test_who_is_on_call_is_texted(whole, says, text):
    """The notifier in a task's process and in the triggerer, with numbers from a variable in Airflow's database."""
    alerts = {number: alert for number, alert in whole.alerts if says in alert}
    assert set(alerts) == set(ON_CALL)
    assert [alert for alert in alerts.values() if not re.fullmatch(text, alert, re.DOTALL)] == []


def test_a_sensor_outlives_its_triggerer(whole):
    """Deferred in a triggerer that is killed, it is looked after by another until there is credit."""
    assert (whole.looks >= 1, whole.states["waits"]) == (True, "success")


def test_assets_start_campaigns_and_tell_what_was_sent(whole):
    """An update triggers a DAG; who is scheduled by a send's own event knows its counts, and the credit left."""
    assert whole.states["example_sms_on_update"] == "success"
    assert whole.run_type in ("asset_triggered", "dataset_triggered")
    assert (whole.told["rows"], whole.told["accepted"], whole.told["unknown"]) == (30, 30, 0)
    # Others send at the same time.
    assert NEEDED < whole.told["remaining_balance"] <= BOUGHT - 30


def test_a_mapped_task_has_its_name_and_its_report(whole):
    """By the template of the user's; the report has a row for each person, at the path that the task was given."""
    assert (whole.label, pq.read_table(whole.report).num_rows) == ("people.parquet", 30)


def test_metrics_come_from_workers_and_from_the_triggerer(whole):
    """By Airflow's own exporter, with their tags; the balance is there while a sensor is deferred."""
    exported = b"".join(whole.exported)
    names = [f"airflow.sms.{name}" for name in ("accepted", "invalid", "request_duration", "balance")]
    assert [word for word in (*names, "conn_id", "sms_default", "waits") if word.encode() not in exported] == []
