from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.versions import AIRFLOW

from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.testing.dag_runs import register

pytestmark = pytest.mark.skipif(AIRFLOW >= (3, 0), reason="newer DAG processors are asked in other words")

FIRST = "27821234567"
RUN = "manual__1"


@pytest.fixture
def call(sms_default, request):
    """Have Airflow's DAG processor call for a run whose task is at its second try."""
    import pendulum
    from airflow.dag_processing.processor import DagFileProcessor
    from airflow.providers.common.compat.sdk import DAG, BaseOperator
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType

    dag_id = f"nightly_{request.node.name}"
    notifier = SmsNotifier(to=FIRST)
    with DAG(dag_id, schedule=None, on_failure_callback=notifier) as dag:
        BaseOperator(task_id="load", on_failure_callback=notifier)
    register(dag)

    def call(make):
        with create_session() as session:
            run = dag.create_dagrun(
                "running", pendulum.now("UTC"), RUN, run_type=DagRunType.MANUAL, external_trigger=True, session=session
            )
            (ti,) = run.get_task_instances(session=session)
            ti.state, ti.try_number = "running", 2
            session.commit()
            bag = SimpleNamespace(dags={dag_id: dag})
            DagFileProcessor.execute_callbacks(bag, [make(dag_id, ti)], unit_test_mode=False, session=session)
        return dag_id

    return call


def test_a_run_that_timed_out_is_reported(call, texts):
    """For a run that timed out Airflow hands over any of its tasks, and the reason."""
    from airflow.callbacks.callback_requests import DagCallbackRequest

    dag_id = call(lambda dag_id, _: DagCallbackRequest("nightly.py", dag_id, RUN, None, msg="timed_out"))
    assert texts() == [(FIRST, f"Airflow: DAG {dag_id}: timed out, run {RUN}")]


def test_a_task_whose_process_died_is_reported(call, texts):
    """The DAG processor fails it, and calls for it."""
    from airflow.callbacks.callback_requests import TaskCallbackRequest
    from airflow.models.taskinstance import SimpleTaskInstance

    dag_id = call(lambda _, ti: TaskCallbackRequest("nightly.py", SimpleTaskInstance.from_ti(ti), msg="zombie"))
    assert texts() == [(FIRST, f"Airflow: {dag_id}.load failed, try 2, run {RUN}")]
