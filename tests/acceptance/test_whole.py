from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from support.versions import AIRFLOW
from support.whole import BOUGHT, NEEDED, ON_CALL

from airflow_provider_sms.get_provider_info import get_provider_info


def test_every_example_ends_as_it_says(whole):
    """All succeed, but for the one that shows what happens when a task fails."""
    assert {dag_id for dag_id, state in whole.states.items() if state != "success"} == {
        "example_sms_alert",
        "example_sms_approval changed",
    }
    assert len(whole.taken) > 1500


def test_a_plan_is_sent_once_it_is_approved_and_no_other_plan_is(whole):
    """A person answers by Airflow's API: nothing is sent before, all is sent after; nothing once refused or changed."""
    assert whole.unapproved == {"once": 0, "refused": 0, "changed": 0}
    sent = whole.approved
    assert (sent["once"] > 1000, sent["refused"], sent["changed"]) == (True, 0, 0)


def test_a_plan_below_the_bound_is_sent_without_a_question(whole):
    """By a branch of Airflow's before the question."""
    assert whole.approved["cheap"] > 1000


def test_a_failed_task_texts_who_is_on_call(whole):
    """The notifier, with numbers from a variable of Airflow's."""
    texts = {number: text for number, text in whole.alerts if "missed" not in text}
    assert set(texts) == set(ON_CALL)
    (text,) = set(texts.values())
    assert text.startswith("Airflow: example_sms_alert.count_invoices failed, try ")
    assert text.endswith(", run once")


def test_a_missed_deadline_texts_who_is_on_call(whole):
    """The notifier in the triggerer, with a variable from Airflow's database."""
    texts = {number: text for number, text in whole.alerts if "missed" in text}
    assert set(texts) == set(ON_CALL)
    assert {text.partition(" of ")[0] for text in texts.values()} == {"Airflow: DAG waits missed its deadline"}


def test_a_sensor_outlives_its_triggerer(whole):
    """Deferred in a triggerer that is killed, it is looked after by another until there is credit."""
    assert (whole.looks >= 1, whole.states["waits"]) == (True, "success")


def test_an_update_of_an_asset_starts_a_campaign(whole):
    """Nobody triggered it."""
    assert whole.states["example_sms_on_update"] == "success"
    assert whole.run_type in ("asset_triggered", "dataset_triggered")


def test_who_is_scheduled_by_a_send_knows_its_counts(whole):
    """The event of the asset that it updates has them, and the credit that is left."""
    assert (whole.told["rows"], whole.told["accepted"], whole.told["unknown"]) == (30, 30, 0)
    # Others send at the same time.
    assert NEEDED < whole.told["remaining_balance"] <= BOUGHT - 30


def test_a_report_has_a_row_for_each_person(whole):
    """At the path that the task was given."""
    assert pq.read_table(whole.report).num_rows == 30


def test_a_mapped_task_is_named_by_what_it_sends(whole):
    """By the template of the user's."""
    assert whole.label == "people.parquet"


@pytest.mark.skipif(AIRFLOW < (3, 2), reason="Airflow takes the form from the metadata since 3.2")
def test_the_api_gives_the_form_of_a_connection(whole):
    """Every field that is declared reaches the web page."""
    (declared,) = get_provider_info()["connection-types"]
    assert set(whole.form["extra_fields"]) == set(declared["conn-fields"])
    assert whole.form["standard_fields"]["host"]["title"] == "Base URL"


def test_metrics_come_from_workers_and_from_the_triggerer(whole):
    """By Airflow's own exporter; the balance is there while a sensor is deferred."""
    names = {name for name, _ in whole.exported.metrics}
    assert {f"airflow.sms.{name}" for name in ("accepted", "invalid", "request_duration", "balance")} <= names
    tags = (("conn_id", "sms_default"), ("dag_id", "waits"), ("task_id", "text"))
    assert ("airflow.sms.accepted", tags) in whole.exported.metrics
