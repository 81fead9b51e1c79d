from __future__ import annotations

from datetime import datetime, timezone

import pytest

from airflow_provider_sms.testing.task_context import task_context

MONDAY = datetime(2026, 1, 5, 9, 30, tzinfo=timezone.utc)


@pytest.fixture
def task(airflow_home):
    from airflow.providers.common.compat.sdk import DAG, BaseOperator

    with DAG("shop", schedule=None, params={"place": "Durban", "name": "Acacia"}):
        return BaseOperator(task_id="text", params={"name": "Baobab"})


def test_it_has_the_dates_and_the_run(task):
    """Templates find the run's date in each of Airflow's forms, and a run id that the date decides."""
    context = task_context(task, MONDAY, {}, {})
    names = ("ds", "ds_nodash", "ts", "ts_nodash", "run_id")
    assert [context[name] for name in names] == [
        "2026-01-05",
        "20260105",
        "2026-01-05T09:30:00+00:00",
        "20260105T093000",
        "manual__2026-01-05T09:30:00+00:00",
    ]
    assert context["logical_date"] == context["data_interval_start"] == context["data_interval_end"] == MONDAY


def test_params_are_merged_as_in_airflow(task):
    """The configuration of the run is above the task's params, and these are above the DAG's."""
    assert task_context(task, MONDAY, {}, {})["params"] == {"place": "Durban", "name": "Baobab"}
    context = task_context(task, MONDAY, {"name": "Cedar"}, {})
    assert (context["params"]["name"], context["dag_run"].conf) == ("Cedar", {"name": "Cedar"})


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ macros.ds_add(ds, 1) }}", "2026-01-06"),
        ("{{ var.value.shop }} {{ var.json.shops.first }}", "Acacia Baobab"),
        ("{{ conn.shop.host }}", "shop.invalid"),
    ],
    ids=["macros", "variables", "connections"],
)
def test_templates_have_what_airflow_gives_all_tasks(task, monkeypatch, template, text):
    """Macros, and the variables and connections of the environment."""
    monkeypatch.setenv("AIRFLOW_VAR_SHOP", "Acacia")
    monkeypatch.setenv("AIRFLOW_VAR_SHOPS", '{"first": "Baobab"}')
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", '{"conn_type": "http", "host": "shop.invalid"}')
    assert task.render_template(template, task_context(task, MONDAY, {}, {})) == text


def test_xcoms_of_tasks_that_there_are_not(task):
    """They are an error that names the others, unless the task asked for them: another DAG may have such a task."""
    from airflow.providers.common.compat.sdk import BaseOperator

    for other in ("load", "extract"):
        BaseOperator(task_id=other, dag=task.dag)
    ti = task_context(task, MONDAY, {}, {"load": 1, "loda": 2, "elsewhere": 3})["ti"]
    assert ti.xcom_pull(task_ids="elsewhere", dag_id="another") == 3
    words = "no other task 'loda', and task text asked for nothing of it. Its other tasks: 'load', 'extract'$"
    with pytest.raises(LookupError, match=words), ti.requiring_known_tasks():
        pass
    assert ti.xcom_pull(task_ids="loda") == 2
    with ti.requiring_known_tasks():
        pass


def test_an_error_of_the_task_comes_first(task):
    """What a test did wrong must not hide what the task says."""
    ti = task_context(task, MONDAY, {}, {"loda": 2})["ti"]
    with pytest.raises(ZeroDivisionError), ti.requiring_known_tasks():
        raise ZeroDivisionError


def test_of_a_task_in_no_dag_any_other_may_be_known(airflow_home):
    """Nothing says which tasks there will be."""
    from airflow.providers.common.compat.sdk import BaseOperator

    with task_context(BaseOperator(task_id="alone"), MONDAY, {}, {"load": 1})["ti"].requiring_known_tasks():
        pass


def test_xcoms_stay_in_memory(task):
    """A task finds its own XComs and those that were given; one that was not given is an error that names it."""
    ti = task_context(task, MONDAY, {}, {"overdue": [1], "paid": [2]})["ti"]
    ti.xcom_push(key="plan", value=3)
    assert [ti.xcom_pull(key="plan"), ti.xcom_pull(task_ids="text", key="report")] == [3, None]
    assert [ti.xcom_pull(task_ids="overdue"), ti.xcom_pull(["overdue", "paid"])] == [[1], [[1], [2]]]
    with pytest.raises(LookupError, match="the XCom 'plan' of task overdue"):
        ti.xcom_pull(task_ids="overdue", key="plan")
