"""Airflow's callbacks for a missed deadline."""

from __future__ import annotations

import json
from types import SimpleNamespace

from support.versions import AIRFLOW


def trigger_of(callback, context):
    """Return the trigger of an asynchronous callback, with the arguments that Airflow stores."""
    if AIRFLOW < (3, 2):
        from airflow.triggers.deadline import DeadlineCallbackTrigger as CallbackTrigger
    else:
        from airflow.triggers.callback import CallbackTrigger

    return CallbackTrigger(callback.path, json.loads(json.dumps({**callback.kwargs, "context": context})))


def execute(callback, context):
    """Run a synchronous callback like an executor; return whether it ran, and its error if not."""
    arguments = {**callback.kwargs, "context": context}
    log = SimpleNamespace(debug=lambda *_, **__: None, info=lambda *_, **__: None)
    if AIRFLOW < (3, 3):
        from airflow.executors.workloads.callback import execute_callback_workload

        return execute_callback_workload(SimpleNamespace(data={"path": callback.path, "kwargs": arguments}), log)
    from airflow.sdk.execution_time.callback_supervisor import execute_callback

    return execute_callback(callback.path, arguments, "", None, log)
