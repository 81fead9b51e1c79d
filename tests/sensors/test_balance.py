from __future__ import annotations

import time
from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, TaskDeferred
from support.airflow import run_task
from support.later import later
from support.metrics import Told

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.sensors.balance import BalanceSensor

MODES = {
    "poke": {"mode": "poke", "deferrable": False},
    "reschedule": {"mode": "reschedule", "deferrable": False},
    "deferrable": {"deferrable": True},
}


BROKEN = {"kind": "status", "status": 500, "on": "balance"}


@pytest.fixture(params=MODES.values(), ids=MODES)
def wait(request, sms_default):
    """Run a BalanceSensor in Airflow, in each mode."""

    def wait(min_balance=None, *, retries=0, **arguments):
        arguments = {"poke_interval": 0.05, "timeout": 20, **request.param, **arguments}

        return run_task(lambda: BalanceSensor(task_id="wait", min_balance=min_balance, **arguments), retries=retries)

    return wait


def balance_requests(sandbox):
    return [r for r in sandbox.state.requests if r.operation == "balance"]


def test_enough_credit_passes_at_once(wait, sandbox, metrics):
    """A balance of exactly the amount, which a template may give, suffices; one look is enough, and is a metric."""
    sandbox.state.set_balance(500)
    ran = wait("{{ 5 * 100 }}")
    assert (ran.state, ran.summary) == ("success", {"balance": 500.0, "post_paid": False})
    assert len(balance_requests(sandbox)) == 1
    assert metrics.told == [Told("gauge", "sms.balance", 500.0, {"conn_id": "sms_default"})]


def test_it_waits_until_credit_arrives(wait, sandbox):
    """The DAG is delayed until there is enough credit."""
    sandbox.state.set_balance(10)
    with later(lambda: sandbox.state.set_balance(700), lambda: len(balance_requests(sandbox)) >= 2):
        ran = wait("500")
    assert (ran.state, ran.summary) == ("success", {"balance": 700.0, "post_paid": False})


def test_a_post_paid_account_passes_whatever_is_asked(wait, sandbox):
    """Where nothing is deducted there is always credit."""
    sandbox.state.post_paid = True
    ran = wait(99_999_999)
    assert (ran.state, ran.summary) == ("success", {"balance": 1_000_000.0, "post_paid": True})


def test_transient_errors_are_ridden_out(wait, sandbox):
    """5xx and 429 are looked at again."""
    sandbox.state.set_faults([BROKEN, {**BROKEN, "status": 429}, {"kind": "drop_before", "on": "balance"}])
    assert wait(1).state == "success"


@pytest.mark.parametrize("is_broken", [True, False])
@pytest.mark.parametrize(("option", "state"), [({}, "failed"), ({"soft_fail": True}, "skipped")], ids=str)
def test_it_waits_until_the_timeout(wait, sandbox, option, state, is_broken):
    """For credit, and however many transient errors there are, of which it tells; the token is nowhere."""
    sandbox.state.set_balance(1)
    sandbox.state.set_faults([{**BROKEN, "persistent": True}] if is_broken else [])
    ran = wait(9, timeout=0.5, **option)
    assert (ran.state, "The balance cannot be read" in ran.log) == (state, is_broken)
    assert "sandbox-token-0123" not in f"{ran.log}{ran.rendered}"
    assert len(balance_requests(sandbox)) >= 2


@pytest.mark.parametrize(
    ("option", "state"), [({}, "failed"), ({"soft_fail": True}, "skipped"), ({"never_fail": True}, "skipped")], ids=str
)
@pytest.mark.parametrize(("status", "looks_before"), [(401, 0), (403, 0), (401, 2)])
def test_a_refusal_ends_the_wait_at_once(wait, sandbox, status, looks_before, option, state):
    """At the first look or while it waits, without a retry; it is soft where that is asked for, as in every sensor."""
    sandbox.state.set_balance(1)
    refused = {"kind": "status", "status": status, "on": "balance", "persistent": True}
    harmless = {"kind": "none", "on": "balance", "times": looks_before}
    sandbox.state.set_faults([harmless, refused] if looks_before else [refused])
    ran = wait(100, retries=2, **option)
    assert (ran.state, ran.tries, len(balance_requests(sandbox))) == (state, 1, looks_before + 1)


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
        ({"min_balance": None}, "min_balance must be a number, not None"),
        ({"min_balance": 1, "sms_conn_id": ""}, "sms_conn_id must be the id of a connection"),
    ],
    ids=str,
)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """Each argument by its name."""
    with pytest.raises(InputError, match=words):
        BalanceSensor(task_id="wait", **arguments)
    BalanceSensor(task_id="wait", min_balance="{{ params.x }}")


def test_a_new_token_is_used_by_the_next_poke(sms_default, sandbox):
    """Each poke reads the connection anew."""
    sensor = BalanceSensor(task_id="wait", min_balance=1)
    sms_default(password="an-old-token")
    with pytest.raises(AirflowFailException, match="401"):
        sensor.poke({"task": sensor})
    sms_default()
    assert sensor.poke({"task": sensor}).is_done


def deferred(**arguments):
    """Let a sensor defer, and give what it defers with."""
    with DAG("dag", schedule=None):
        sensor = BalanceSensor(task_id="wait", min_balance="9", deferrable=True, **arguments)
    with pytest.raises(TaskDeferred) as caught:
        sensor.execute({})
    return caught.value


@pytest.mark.parametrize("unit", [float, lambda given: timedelta(seconds=given)], ids=["seconds", "timedelta"])
def test_what_it_defers_with(sms_default, sandbox, unit):
    """The trigger is told all that the base's options say, and when the first look was."""
    sandbox.state.set_faults([BROKEN])
    before = time.time()
    given = deferred(poke_interval=unit(30), timeout=unit(3600))
    arguments = given.trigger.serialize()[1]
    started_at = arguments.pop("started_at")
    assert before <= started_at <= time.time()
    assert arguments == {"sms_conn_id": "sms_default", "min_balance": "9", "poke_interval": 30.0, "timeout": 3600.0}
    sandbox.state.set_balance(1)
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.05, "on": "balance"}])
    assert timedelta(seconds=3590) < deferred(timeout=3600).timeout <= timedelta(seconds=3599.95)
