from __future__ import annotations

from datetime import datetime, timezone

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
