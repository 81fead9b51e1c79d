from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sms.execution.options import SendingTask
from airflow_provider_sms.stop_flag import StopFlag


@pytest.mark.parametrize(
    ("facts", "is_retried"),
    [
        ({"try_number": 1, "max_tries": 0}, False),
        ({"try_number": 1, "max_tries": 1}, True),
        ({"try_number": 2, "max_tries": 1}, False),
        # Cleared after its last attempt, with one retry.
        ({"try_number": 3, "max_tries": 3}, True),
        ({"try_number": 4, "max_tries": 3}, False),
        # By ``airflow tasks test``.
        ({"try_number": 0, "max_tries": 0}, False),
        ({"try_number": 0, "max_tries": 2}, False),
        # In a test without Airflow.
        ({"try_number": 1}, False),
    ],
)
def test_an_attempt_is_retried_where_airflow_starts_another_one_after_it(facts, is_retried):
    """Airflow counts attempts from 1, and ``max_tries`` from the last clear; a task that is tested is attempt 0."""
    context = {"ti": SimpleNamespace(**facts)}
    task = SendingTask(context, None, None, None, StopFlag(), "c")
    assert task.is_retried == is_retried
