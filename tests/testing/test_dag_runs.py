from __future__ import annotations

from datetime import datetime, timezone

import pytest

from airflow_provider_sms.testing.dag_runs import register, returned_values, run_dag

MONDAY, TUESDAY = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (5, 6))


def test_a_dag_of_no_file_runs(airflow_home):
    """A DAG that stands in no DAGs folder runs on a date, and what its tasks returned is read for each run."""
    from airflow.providers.common.compat.sdk import DAG, task

    @task
    def day(ds=None):
        return ds

    @task
    def plus(number):
        return number + 1

    with DAG("of_no_file", schedule=None) as dag:
        day()
        plus.expand(number=[1, 2])
    register(dag)
    runs = [run_dag(dag, date) for date in (MONDAY, TUESDAY)]
    assert [returned_values(run) for run in runs] == [
        {("day", -1): date, ("plus", 0): 2, ("plus", 1): 3} for date in ("2026-01-05", "2026-01-06")
    ]


@pytest.fixture
def returned(airflow_home):
    """Run a DAG whose tasks return some values, and give them as they are read back, by task id."""
    from airflow.providers.common.compat.sdk import DAG, task

    def returned(values):
        with DAG("of_values", schedule=None) as dag:
            for name, value in values.items():
                task(task_id=name)(lambda value=value: value)()
        register(dag)
        return {task_id: value for (task_id, _), value in returned_values(run_dag(dag, MONDAY)).items()}

    return returned


def test_values_are_those_that_the_tasks_returned(returned):
    """A text that looks like another type is still a text, and what Airflow stores in another form is read back."""
    values = {"text": "27820000001", "json": '{"a": 1}', "null": "null", "pair": (1, 2), "day": MONDAY.date()}
    assert returned(values) == values


def test_a_value_that_airflow_may_not_load_is_shown_as_it_is_stored(returned, monkeypatch):
    """It is of a class that the configuration does not allow; the run has succeeded all the same."""
    from airflow.providers.common.compat.sdk import XCom

    def refuse(row):
        raise ImportError("not in the allowed classes")

    monkeypatch.setattr(XCom, "deserialize_value", refuse)
    assert returned({"five": 5}) in ({"five": 5}, {"five": b"5"})
