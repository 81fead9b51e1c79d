"""The default campaign, which is one per DAG run, where several runs may text the same people."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from support.airflow import run_task

from airflow_provider_sms.execution.planning import several_runs_in_words
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

DEFAULT = "dag/send/run"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def context(run_type, *, ended=2 * DAY, lasted=DAY, catchup=True):
    """The context of a run whose interval ended so long ago."""
    end = datetime.now(timezone.utc) - ended
    return {
        "ti": SimpleNamespace(dag_id="dag", task_id="send", run_id="run", map_index=-1, try_number=1),
        "dag": SimpleNamespace(catchup=catchup),
        "dag_run": SimpleNamespace(run_type=run_type, data_interval_start=end - lasted, data_interval_end=end),
    }


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (context("backfill"), "backfill"),
        (context("backfill", ended=HOUR, catchup=False), "backfill"),
        (context("scheduled"), "catch-up"),
        (context("scheduled", lasted=timedelta()), "catch-up"),
        (context("scheduled", ended=6 * HOUR), None),  # the latest run, which waited for a slot
        (context("scheduled", ended=5 * DAY, lasted=7 * DAY), None),
        (context("scheduled", catchup=False), None),  # Airflow runs the latest alone
        (context("manual"), None),
    ],
)
def test_a_run_of_several_is_warned_of(run, kind):
    """In a backfill, and in a catch-up, which begins once the next run is due; a named campaign texts once."""
    words = several_runs_in_words(run, DEFAULT)
    assert (kind is None) == (words is None)
    assert kind is None or words.startswith(
        f"This run is part of a {kind}, and the campaign is the default, one per DAG"
    )
    assert several_runs_in_words(run, "reminders") is None


def test_a_run_without_dates_is_none_of_several():
    """A run that is triggered has no interval, and some contexts have no run."""
    run = context("scheduled")
    run["dag_run"].data_interval_start = run["dag_run"].data_interval_end = None
    assert several_runs_in_words(run, DEFAULT) is None
    assert several_runs_in_words({**run, "dag_run": None}, DEFAULT) is None


def test_the_plan_has_the_warning(sms_default, ledger_path, monkeypatch):
    """In the log and in the XCom, of a dry run, too, so that nobody has to be texted twice to learn of it."""
    make = {"task_id": "send", "source": [{"destination": "27820000001"}], "message": "Hi", "dry_run": True}
    assert "warning" not in run_task(lambda: BulkSmsOperator(**make)).xcoms["plan"]
    monkeypatch.setattr(
        "airflow_provider_sms.execution.bulk.several_runs_in_words", lambda *_: "Each of its runs texts"
    )
    ran = run_task(lambda: BulkSmsOperator(**make))
    assert ("Each of its runs texts" in ran.log, ran.xcoms["plan"]["warning"]) == (True, "Each of its runs texts")


@pytest.mark.parametrize("kind", [BulkSmsOperator, GroupSmsOperator])
def test_the_log_says_what_the_default_campaign_means(sms_default, ledger_path, kind):
    """And nothing of a campaign that has a name."""
    people = {"source": [{"destination": "27820000001"}]} if kind is BulkSmsOperator else {"groups": "staff"}
    ran = run_task(lambda: kind(task_id="send", message="Hi", **people))
    assert f"/send/{ran.run_id} (one per DAG run: name it to text each person once, ever), remembered in" in ran.log
    ran = run_task(lambda: kind(task_id="send", message="Hi", campaign="reminders", **people))
    assert "Campaign reminders, remembered in" in ran.log
