from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred
from support.airflow import run_task

from airflow_provider_sms.execution.waits import require_balance, wait_for_balance, wait_until
from airflow_provider_sms.operators.base import SmsOperatorBase


class Waits(SmsOperatorBase):
    """Waits once."""

    def __init__(self, *, wait, arguments, **kwargs):
        super().__init__(**kwargs)
        self.wait = wait
        self.arguments = arguments

    def send(self, context, event):
        if event is None:
            self.wait(*self.arguments)
        require_balance(event)
        return "resumed"


@pytest.fixture
def wait_in_task(sms_default):
    """Run a task in Airflow that waits."""

    def wait_in_task(wait, *arguments, **options):
        return run_task(lambda: Waits(task_id="waits", wait=wait, arguments=arguments), **options)

    return wait_in_task


def now(**later):
    return datetime.now(timezone.utc) + timedelta(**later)


def looks(sandbox):
    return len([request for request in sandbox.state.requests if request.operation == "balance"])


# A moment


def test_a_moment_to_come_is_waited_for(wait_in_task):
    """The task goes on when it has come, and not before."""
    moment = now(seconds=1)
    ran = wait_in_task(wait_until, moment)
    assert (ran.state, ran.tries, ran.summary) == ("success", 1, "resumed")
    assert now() >= moment


def test_a_moment_that_has_passed_is_not_waited_for(wait_in_task):
    """Also one in another time zone: it is the instant that counts."""
    ran = wait_in_task(wait_until, now(minutes=-1).astimezone(timezone(timedelta(hours=5))))
    assert (ran.state, ran.summary) == ("success", "resumed")


def test_the_moment_is_all_that_the_trigger_is_told():
    """It is stored in Airflow's database, and read there by a triggerer that may be started anew."""
    moment = now(days=1)
    with pytest.raises(TaskDeferred) as deferred:
        wait_until(moment)
    given = deferred.value.trigger.serialize()[1]
    assert given == {"moment": moment, "end_from_trigger": False}
    assert (deferred.value.method_name, deferred.value.timeout) == ("execute_complete", None)


# Credit


@pytest.fixture
def short_interval(monkeypatch):
    """Have the balance read again at once."""
    monkeypatch.setattr("airflow_provider_sms.execution.waits.INTERVAL_SECONDS", 0.01)


def test_credit_is_waited_for(wait_in_task, sandbox, short_interval):
    """However often the service fails meanwhile, the task goes on once there is enough."""
    sandbox.state.set_balance(10)
    sandbox.state.set_faults([{"kind": "status", "status": 503, "on": "balance", "times": 12}])

    def top_up():
        until = time.monotonic() + 60
        while looks(sandbox) < 14 and time.monotonic() < until:
            time.sleep(0.005)
        sandbox.state.set_balance(700)

    thread = threading.Thread(target=top_up)
    thread.start()
    ran = wait_in_task(wait_for_balance, "sms_default", Decimal(500))
    thread.join()
    assert (ran.state, ran.tries, ran.summary) == ("success", 1, "resumed")


def test_enough_credit_is_seen_at_once(wait_in_task, sandbox):
    """The first look does not wait for the interval; exactly the amount suffices."""
    sandbox.state.set_balance("500.25")
    ran = wait_in_task(wait_for_balance, "sms_default", Decimal("500.25"))
    assert (ran.summary, looks(sandbox)) == ("resumed", 1)


def test_a_refusal_ends_the_wait_and_the_task(wait_in_task, sandbox, short_interval):
    """It will be refused again: no retry is spent on it, and the service's words are in the log."""
    sandbox.state.set_faults([{"kind": "status", "status": 401, "on": "balance"}])
    ran = wait_in_task(wait_for_balance, "sms_default", Decimal(5), retries=2)
    assert (ran.state, ran.tries, looks(sandbox)) == ("failed", 1, 1)
    assert "401" in ran.log


def test_no_end_and_no_secret_are_told_to_the_trigger():
    """It waits for as long as it takes, and its arguments are stored unencrypted."""
    with pytest.raises(TaskDeferred) as deferred:
        wait_for_balance("mine", Decimal("2.50"))
    given = deferred.value.trigger.serialize()[1]
    told = {name: value for name, value in given.items() if value}
    assert told == {"sms_conn_id": "mine", "min_balance": "2.50", "poke_interval": 30.0}
    assert (given["max_failures"], given["timeout"], deferred.value.timeout) == (None, None, None)
    assert deferred.value.method_name == "execute_complete"


# What Airflow brings back


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
