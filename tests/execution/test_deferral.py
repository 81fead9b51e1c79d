from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred

from airflow_provider_sms.execution.waits import require_balance, wait
from airflow_provider_sms.sending.stop_conditions import StopReason


@pytest.fixture
def deferred():
    """Let a send wait, and return what Airflow stores of the wait."""

    def deferred(**reason):
        run = SimpleNamespace(progress=Mock(), settings=SimpleNamespace(conn_id="mine"))
        with pytest.raises(TaskDeferred) as raised:
            wait(run, StopReason(**reason))
        assert (raised.value.method_name, raised.value.timeout) == ("execute_complete", None)
        return raised.value.trigger.serialize()[1]

    return deferred


def test_the_moment_is_all_that_the_trigger_is_told(deferred):
    """It is stored in Airflow's database, and read there by a triggerer that may be started anew."""
    moment = datetime.now(timezone.utc) + timedelta(days=1)
    assert deferred(until=moment) == {"moment": moment, "end_from_trigger": False}


def test_no_end_and_no_secret_are_told_to_the_trigger(deferred):
    """It waits for as long as it takes, and its arguments are stored unencrypted."""
    given = deferred(credit=Decimal("2.50"))
    told = {name: value for name, value in given.items() if value}
    assert told == {"sms_conn_id": "mine", "min_balance": "2.50", "poke_interval": 30.0}
    assert (given["started_at"], given["timeout"]) == (None, None)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"status": "error", "message": "401 no", "permanent": True}, AirflowFailException),
        ({"status": "error", "message": "503 no", "permanent": False}, AirflowException),
        ({"status": "timeout", "message": "No credit"}, AirflowException),
    ],
)
def test_a_wait_for_credit_that_failed_fails_the_task(event, error):
    """With its words, and without retries where they could not help."""
    with pytest.raises(error) as raised:
        require_balance(event)
    assert (type(raised.value), str(raised.value)) == (error, event["message"])
