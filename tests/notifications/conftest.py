from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from support.airflow import run_task
from support.versions import AIRFLOW


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


@pytest.fixture
def no_variables(monkeypatch):
    """No variable is known but those in the environment, which Airflow 3.0 has said by the process of its callbacks."""
    if AIRFLOW == (3, 0):
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time import comms, task_runner

        def send(asked):
            is_variable = isinstance(asked, comms.GetVariable)
            return comms.ErrorResponse(
                error=ErrorType.VARIABLE_NOT_FOUND if is_variable else ErrorType.CONNECTION_NOT_FOUND
            )

        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(send=send), raising=False)
