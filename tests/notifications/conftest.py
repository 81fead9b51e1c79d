from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from support.airflow import run_task


@pytest.fixture
def fail(sms_default):
    """Run a task that fails in a real Airflow, with a notifier at the place that the test chooses."""

    def fail(*, retries=0, in_dag=None, **in_task):
        from airflow.providers.common.compat.sdk import task

        def raises():
            raise AirflowException("the load of this night failed")

        return run_task(lambda: task(task_id="load", **in_task)(raises)().operator, retries=retries, **in_dag or {})

    return fail


@pytest.fixture
def texts(sandbox):
    """Return the texts that arrived, with their numbers, in order."""
    return lambda: sandbox.state.accepted_messages


@pytest.fixture
def said(capfd, caplog):
    """Return all that was logged since the start of the test, wherever Airflow's version logs."""
    heard = []

    def said():
        heard.extend(capfd.readouterr())
        return "".join([*heard, caplog.text])

    return said
