from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, TaskDeferred
from support.airflow import run_task

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.sensors.balance import BalanceSensor

MODES = {
    "poke": {"mode": "poke", "deferrable": False},
    "reschedule": {"mode": "reschedule", "deferrable": False},
    "deferrable": {"deferrable": True},
}


@pytest.fixture(params=MODES.values(), ids=MODES)
def wait(request, sms_default):
    """Run a BalanceSensor in Airflow, in each mode."""

    def wait(min_balance, *, retries=0, **arguments):
        arguments = {"poke_interval": 0.05, "timeout": 20, **request.param, **arguments}

        def make():
            sensor = BalanceSensor(task_id="wait", min_balance=min_balance, **arguments)
            sensor._sleep = lambda seconds: None  # a poke that retries within itself does not really wait
            return sensor

        return run_task(make, retries=retries)

    return wait


def balance_requests(sandbox):
    return [r for r in sandbox.state.requests if r.operation == "balance"]


def test_enough_credit_passes_at_once(wait, sandbox):
    """A balance of exactly the amount suffices, which may come from a template; one look is enough."""
    sandbox.state.set_balance(500)
    ran = wait("{{ 5 * 100 }}")
    assert (ran.state, ran.summary) == ("success", {"balance": 500.0, "post_paid": False})
    assert len(balance_requests(sandbox)) == 1


def test_it_waits_until_credit_arrives(wait, sandbox):
    """The DAG is delayed until there is enough credit."""
    sandbox.state.set_balance(10)

    def top_up():
        while len(balance_requests(sandbox)) < 2:
            time.sleep(0.005)
        sandbox.state.set_balance(700)

    thread = threading.Thread(target=top_up)
    thread.start()
    ran = wait("500")
    thread.join()
    assert (ran.state, ran.summary) == ("success", {"balance": 700.0, "post_paid": False})


def test_a_post_paid_account_passes_whatever_is_asked(wait, sandbox):
    """Where nothing is deducted there is always credit."""
    sandbox.state.set_post_paid(True)
    ran = wait(99_999_999)
    assert (ran.state, ran.summary) == ("success", {"balance": 1_000_000.0, "post_paid": True})


def test_transient_errors_are_ridden_out(wait, sandbox):
    """5xx and 429 are looked at again."""
    sandbox.state.set_faults(
        [
            {"kind": "status", "status": 500, "on": "balance"},
            {"kind": "status", "status": 429, "on": "balance"},
            {"kind": "drop_before", "on": "balance"},
        ]
    )
    ran = wait(1)
    assert ran.state == "success"


@pytest.mark.parametrize(("max_failures", "says"), [(2, "3 times in a row"), (0, "1 time in a row")])
def test_too_many_transient_errors_fail(wait, sandbox, max_failures, says):
    """A service that stays broken fails the sensor, in the same bounded number of looks, said in the same words."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance", "persistent": True}])
    ran = wait(1, max_failures=max_failures)
    assert (ran.state, f"The balance could not be read {says}" in ran.log) == ("failed", True)
    assert len(balance_requests(sandbox)) == max_failures + 1


@pytest.mark.parametrize(("option", "state"), [("soft_fail", "failed"), ("never_fail", "skipped")])
def test_a_service_that_stays_broken_is_what_never_fail_is_for(wait, sandbox, option, state):
    """Transient errors are no failure that ``soft_fail`` skips: the task's retries are for them."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance", "persistent": True}])
    assert wait(1, max_failures=1, **{option: True}).state == state


@pytest.mark.slow
def test_silent_fail_rides_out_any_number(wait, sandbox):
    """With ``silent_fail`` only what is permanent ends the wait."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance", "times": 6}])
    assert wait(1, max_failures=1, silent_fail=True).state == "success"


@pytest.mark.parametrize(("status", "looks_before"), [(401, 0), (403, 0), (401, 2)])
def test_a_refusal_fails_at_once(wait, sandbox, status, looks_before):
    """401 and 403 are not looked at again, at the first look or while it waits, and no retry is spent on them."""
    sandbox.state.set_balance(1)
    refused = {"kind": "status", "status": status, "on": "balance", "persistent": True}
    harmless = {"kind": "none", "on": "balance", "times": looks_before}
    sandbox.state.set_faults([harmless, refused] if looks_before else [refused])
    ran = wait(100, retries=2)
    assert (ran.state, ran.tries, len(balance_requests(sandbox))) == ("failed", 1, looks_before + 1)


@pytest.mark.parametrize("option", ["soft_fail", "never_fail"])
@pytest.mark.parametrize("looks_before", [0, 2])
def test_a_refusal_is_soft_where_asked_for(wait, sandbox, option, looks_before):
    """``soft_fail`` and ``never_fail`` skip, as they do for every sensor, at the first look and while it waits."""
    sandbox.state.set_balance(1)
    refused = {"kind": "status", "status": 401, "on": "balance", "persistent": True}
    harmless = {"kind": "none", "on": "balance", "times": looks_before}
    sandbox.state.set_faults([harmless, refused] if looks_before else [refused])
    assert wait(100, **{option: True}).state == "skipped"


def test_a_wrong_amount_is_named(wait):
    """``min_balance`` that renders to no number is refused."""
    ran = wait("{{ 'plenty' }}", retries=2)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "min_balance must be a number, not the text 'plenty'" in ran.log


@pytest.mark.parametrize("argument", ["min_balance", "sms_conn_id"])
def test_rows_in_place_of_an_argument_are_not_quoted(wait, argument):
    """A template that renders the wrong parameter shows no number and no name in the log."""
    params = {"rows": [{"destination": "27821234567", "name": "Thandeka"}]}
    ran = wait(**{"min_balance": 1, argument: "{{ params.rows }}"}, params=params)
    assert ran.state == "failed"
    assert ("27821234567" in ran.log, "Thandeka" in ran.log) == (False, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"min_balance": "plenty"}, "min_balance must be a number, not the text 'plenty'"),
        ({}, "exactly one of min_balance and source is needed"),
        ({"min_balance": "{{ 1 }}", "source": "{{ 'x' }}"}, "exactly one of min_balance and source is needed"),
        ({"min_balance": 1, "max_failures": -1}, "max_failures must be a whole number, at least 0, not -1"),
        ({"source": "a.csv"}, "exactly one of message and content_column is needed"),
        ({"source": "a.csv", "message": "Hi {name!r}"}, "has a conversion"),
        ({"source": "a.csv", "message": "Hi", "default_region": "Atlantis"}, "default_region must be a country"),
        ({"source": "a.csv", "message": "Hi", "cost_per_part": -1}, "cost_per_part is -1"),
    ],
    ids=str,
)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """Each argument by its name; of a sensor without a source, nothing of the source's."""
    with pytest.raises(InputError, match=words):
        BalanceSensor(task_id="wait", **arguments)
    BalanceSensor(task_id="wait", min_balance="{{ params.x }}")
    BalanceSensor(task_id="wait", source="{{ params.x }}", message="{{ params.y }}")


def test_a_new_token_is_used_by_the_next_poke(sms_default, sandbox):
    """Each poke reads the connection anew."""
    sensor = BalanceSensor(task_id="wait", min_balance=1)
    sms_default(password="an-old-token")
    with pytest.raises(AirflowFailException, match="401"):
        sensor.poke({"task": sensor})
    sms_default()
    assert sensor.poke({"task": sensor}).is_done


def test_no_token_is_shown(wait, sandbox):
    """The token is in no log, XCom or rendered field."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance"}])
    ran = wait(1)
    assert "sandbox-token-0123" not in f"{ran.log}{ran.xcoms}{ran.rendered}"


@pytest.mark.parametrize(("soft_fail", "state"), [(False, "failed"), (True, "skipped")])
def test_waiting_too_long_fails(wait, sandbox, soft_fail, state):
    """The base's ``timeout`` ends the wait; with ``soft_fail`` the task is skipped."""
    sandbox.state.set_balance(1)
    assert wait(9, timeout=0.2, soft_fail=soft_fail).state == state


def deferred(**arguments):
    """Let a sensor defer, and give what it defers with."""
    with DAG("dag", schedule=None):
        sensor = BalanceSensor(task_id="wait", min_balance="9", deferrable=True, **arguments)
    with pytest.raises(TaskDeferred) as caught:
        sensor.execute({})
    return caught.value


@pytest.mark.parametrize("unit", ["seconds", "timedelta"])
def test_what_it_defers_with(sms_default, sandbox, unit):
    """The trigger is told all that the base's options say, and what has happened so far."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance"}])
    before = time.time()
    seconds = float if unit == "seconds" else lambda given: timedelta(seconds=given)
    given = deferred(
        poke_interval=seconds(30),
        timeout=seconds(3600),
        max_failures=3,
    )
    arguments = given.trigger.serialize()[1]
    started_at = arguments.pop("started_at")
    assert before <= started_at <= time.time()
    assert arguments == {
        "sms_conn_id": "sms_default",
        "min_balance": "9",
        "poke_interval": 30.0,
        "max_failures": 3,
        "failures": 1,
        "timeout": 3600.0,
    }


def test_the_first_look_is_of_the_timeout(sms_default, sandbox):
    """The time that the sensor's own look took is not granted again to the deferral."""
    sandbox.state.set_balance(1)
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.05, "on": "balance"}])
    assert timedelta(seconds=3590) < deferred(timeout=3600).timeout <= timedelta(seconds=3599.95)
