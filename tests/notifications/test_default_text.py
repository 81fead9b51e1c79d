from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from types import SimpleNamespace

import pytest

from airflow_provider_sms.notifications.default_text import default_text

BASE = "https://airflow.example.com/"
RUN = "scheduled__2026-01-05T00:00:00+00:00"
RUN_LINK = "https://airflow.example.com/dags/nightly/runs/scheduled__2026-01-05T00%3A00%3A00%2B00%3A00"


class State(str, Enum):
    FAILED = "failed"
    UP_FOR_RETRY = "up_for_retry"


def task(**fields):
    """A task instance, as Airflow hands it to a callback."""
    values = {"dag_id": "nightly", "task_id": "load", "run_id": RUN, "map_index": -1, "try_number": 2, **fields}
    return SimpleNamespace(**values)


def words(context, base_url=None):
    return default_text(context, base_url, 3)


@pytest.mark.parametrize(
    ("ti", "expected"),
    [
        (task(state=State.FAILED), f"Airflow: nightly.load failed, try 2, run {RUN}"),
        (task(state="failed"), f"Airflow: nightly.load failed, try 2, run {RUN}"),
        (task(state=State.UP_FOR_RETRY), f"Airflow: nightly.load up for retry, try 2, run {RUN}"),
        (task(state="success", map_index=3), f"Airflow: nightly.load[3] success, try 2, run {RUN}"),
        (task(state="failed", map_index=None), f"Airflow: nightly.load failed, try 2, run {RUN}"),
        (task(state=None), f"Airflow: nightly.load failed, try 2, run {RUN}"),
        (task(), f"Airflow: nightly.load failed, try 2, run {RUN}"),
    ],
)
def test_a_task_is_named_with_its_state_and_try(ti, expected):
    """The callback of a task says which one, in which state, at which try, in which run; none means that it died."""
    assert expected == words({"ti": ti, "run_id": RUN, "dag_run": SimpleNamespace(dag_id="nightly")})


@pytest.mark.parametrize(
    "context",
    [
        {"dag": SimpleNamespace(dag_id="nightly"), "run_id": RUN, "reason": "task_failure"},
        {"ti": task(state="success"), "dag": SimpleNamespace(dag_id="nightly"), "reason": "task_failure"},
    ],
    ids=["without a task", "with any task"],
)
def test_a_dag_is_named_with_its_reason(context):
    """The callback of a DAG says why it was called, and names no task: the one that it is given is any one."""
    assert f"Airflow: DAG nightly: task failure, run {RUN}" == words(context)
    assert f"Airflow: DAG nightly: task failure, run {RUN}\n{RUN_LINK}" == words(context, BASE)


@pytest.mark.parametrize(
    "time", [datetime(2026, 1, 5, 6, 30, tzinfo=timezone.utc), "2026-01-05T06:30:00Z", "2026-01-05 06:30:00+00:00"]
)
def test_a_deadline_is_named_with_its_time(time):
    """The callback of a deadline, which knows no task and has its run as a mapping, says which deadline was missed."""
    run = {"dag_id": "nightly", "dag_run_id": RUN, "state": "running"}
    context = {"dag_run": run, "deadline": {"id": "0a", "deadline_time": time}}
    expected = f"Airflow: DAG nightly missed its deadline of 2026-01-05 06:30 UTC, run {RUN}"
    assert (expected, f"{expected}\n{RUN_LINK}") == (words(context), words(context, BASE))


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"dag": SimpleNamespace(dag_id="nightly"), "task_list": "load"}, "Airflow: DAG nightly"),
        ({}, "Airflow: a callback of no DAG"),
    ],
)
def test_any_context_has_a_text(context, expected):
    """Missing facts are left out."""
    assert expected == words(context, BASE)


def test_the_link_of_a_task_is_airflows_own():
    """It leads to the log of the try; where Airflow has none, to the run."""
    link = f"{RUN_LINK}/tasks/load?try_number=2"
    assert words({"ti": task(state="failed", log_url=link)}, BASE).endswith(f", run {RUN}\n{link}")
    assert words({"ti": task(state="failed")}, BASE).endswith(f", run {RUN}\n{RUN_LINK}")


def test_a_link_that_only_this_machine_would_find_is_left_out():
    """Without ``base_url`` Airflow gives links to localhost, which lead nowhere from a phone."""
    ti = task(state="failed", log_url="http://localhost:8080/dags/nightly/runs/r/tasks/load?try_number=2")
    assert words({"ti": ti}, None) == f"Airflow: nightly.load failed, try 2, run {RUN}"


def test_a_link_that_does_not_fit_is_left_out():
    """Half a link leads nowhere: it is there as a whole or not at all."""
    context = {"dag": SimpleNamespace(dag_id="nightly"), "run_id": RUN, "reason": "task_failure"}
    assert tuple(RUN_LINK in default_text(context, BASE, parts) for parts in (2, 1)) == (True, False)
