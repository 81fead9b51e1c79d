from __future__ import annotations

from collections import Counter

import pytest
from support.airflow import run_task


@pytest.fixture
def text(sms_default, ledger_path):
    """Run a function as a task that texts, on a ledger of its own; what upstream functions return, it receives."""

    def text(recipients, *upstream, message="Hi {first_name}", retries=0, **arguments):
        from airflow.providers.common.compat.sdk import task

        def make():
            given = [
                task(task_id=f"upstream_{number}", show_return_value_in_logs=False)(function)()
                for number, function in enumerate(upstream)
            ]
            return task.bulk_sms(task_id="send", message=message, **arguments)(recipients)(*given).operator

        return run_task(make, retries=retries)

    return text


@pytest.fixture
def witnessed(sandbox):
    """Count how often each person got each text."""
    return lambda: Counter(sandbox.state.accepted_messages)
