from __future__ import annotations

from types import SimpleNamespace
from uuid import uuid4

import pytest

from airflow_provider_sms.notifications.sms import SmsNotifier

FIRST = "27821234567"


@pytest.fixture
def dag(sms_default):
    """A DAG that texts when it fails, and when its task does."""
    from airflow.providers.common.compat.sdk import DAG
    from airflow.providers.standard.operators.empty import EmptyOperator

    notifier = SmsNotifier(to=FIRST)
    with DAG("nightly", schedule=None, on_failure_callback=notifier) as dag:
        EmptyOperator(task_id="load", on_failure_callback=notifier)
    return dag


@pytest.fixture
def processed(dag, texts):
    """Run a callback as Airflow's DAG processor does, and give what arrived."""
    import structlog
    from airflow.dag_processing import processor

    def processed(execute, request):
        getattr(processor, execute)(SimpleNamespace(dags={dag.dag_id: dag}), request, structlog.get_logger())
        return texts()

    return processed


ORIGIN = {"filepath": "nightly.py", "bundle_name": "dags-folder", "bundle_version": None}


def test_a_run_that_timed_out_is_reported(processed):
    """For a run that timed out Airflow knows no task, and hands over the DAG, the run's name and the reason."""
    from airflow.callbacks.callback_requests import DagCallbackRequest

    request = DagCallbackRequest(**ORIGIN, dag_id="nightly", run_id="manual__1", msg="timed_out")
    assert processed("_execute_dag_callbacks", request) == [(FIRST, "Airflow: DAG nightly: timed out, run manual__1")]


def test_a_task_whose_process_died_is_reported(processed):
    """The DAG processor calls for it, with a task that has no state."""
    from airflow.callbacks.callback_requests import TaskCallbackRequest

    ti = {"id": uuid4(), "dag_version_id": uuid4(), "dag_id": "nightly", "task_id": "load", "run_id": "manual__1"}
    request = TaskCallbackRequest(**ORIGIN, ti={**ti, "try_number": 2, "map_index": -1})
    expected = [(FIRST, "Airflow: nightly.load failed, try 2, run manual__1")]
    assert processed("_execute_task_callbacks", request) == expected
