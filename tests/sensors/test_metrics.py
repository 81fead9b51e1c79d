from __future__ import annotations

import pytest
from support.airflow import run_task
from support.metrics import Told

from airflow_provider_sms.sensors.balance import BalanceSensor


@pytest.fixture
def wait(sms_default):
    """Run a BalanceSensor in Airflow."""
    return lambda **arguments: run_task(
        lambda: BalanceSensor(task_id="wait", min_balance=100, poke_interval=0.05, timeout=20, **arguments)
    )


@pytest.mark.parametrize("arguments", [{}, {"mode": "reschedule"}, {"deferrable": True}], ids=str)
def test_each_look_tells_the_balance(wait, sandbox, metrics, arguments):
    """Whether it suffices or not, in the worker and in the triggerer."""
    sandbox.state.set_balance(500)
    wait(**arguments)
    assert metrics.told == [Told("gauge", "sms.balance", 500.0, {"conn_id": "sms_default"})]
