from __future__ import annotations

import threading

import pytest
from support.airflow import run_task

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
        return run_task(lambda: BalanceSensor(task_id="wait", min_balance=min_balance, **arguments), retries=retries)

    return wait


def balance_requests(sandbox):
    return [r for r in sandbox.state.requests if r.operation == "balance"]


def test_enough_credit_passes_at_once(wait, sandbox):
    """A balance of exactly the amount suffices; one look is enough."""
    sandbox.state.set_balance(500)
    ran = wait(500)
    assert (ran.state, ran.summary) == ("success", {"balance": 500.0, "post_paid": False})
    assert len(balance_requests(sandbox)) == 1


def test_it_waits_until_credit_arrives(wait, sandbox):
    """The DAG is delayed until there is enough credit."""
    sandbox.state.set_balance(10)

    def top_up():
        while len(balance_requests(sandbox)) < 2:
            pass
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
    ran = wait(1, **fast_poke())
    assert ran.state == "success"


def test_too_many_transient_errors_fail(wait, sandbox):
    """A service that stays broken fails the sensor, in a bounded number of looks."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance", "persistent": True}])
    ran = wait(1, max_failures=2, **fast_poke())
    assert ran.state == "failed"
    # A deferred sensor looks once in the worker before the trigger counts its own.
    assert len(balance_requests(sandbox)) in (3, 4)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_fails_at_once(wait, sandbox, status):
    """401 and 403 are not looked at again, and no retry is spent on them."""
    sandbox.state.set_faults([{"kind": "status", "status": status, "on": "balance", "persistent": True}])
    ran = wait(1, retries=2)
    assert (ran.state, ran.tries, len(balance_requests(sandbox))) == ("failed", 1, 1)


def test_a_refusal_is_soft_where_asked_for(wait, sandbox):
    """``soft_fail`` skips, as it does for every sensor."""
    sandbox.state.set_faults([{"kind": "status", "status": 401, "on": "balance", "persistent": True}])
    assert wait(1, soft_fail=True).state == "skipped"


def test_a_refusal_while_waiting_fails(wait, sandbox):
    """A token that is withdrawn while the sensor waits fails it without retries."""
    sandbox.state.set_balance(1)
    sandbox.state.set_faults(
        [
            {"kind": "none", "on": "balance", "times": 2},
            {"kind": "status", "status": 401, "on": "balance", "persistent": True},
        ]
    )
    ran = wait(100, retries=2)
    assert (ran.state, ran.tries) == ("failed", 1)


def test_a_wrong_amount_is_named(wait):
    """``min_balance`` that is no number is refused."""
    ran = wait("plenty", retries=2)
    assert (ran.state, ran.tries, "min_balance must be a number, not 'plenty'" in ran.log) == ("failed", 1, True)


def test_the_amount_is_templated(wait, sandbox):
    """``min_balance`` may come from a template."""
    sandbox.state.set_balance(10)
    assert wait("{{ 2 * 5 }}").state == "success"


def test_no_token_is_shown(wait, sandbox):
    """The token is in no log, XCom or rendered field."""
    sandbox.state.set_faults([{"kind": "status", "status": 500, "on": "balance"}])
    ran = wait(1, **fast_poke())
    assert "sandbox-token-0123" not in f"{ran.log}{ran.xcoms}{ran.rendered}"


def test_waiting_too_long_fails(sms_default, sandbox):
    """The base's ``timeout`` ends the wait."""
    sandbox.state.set_balance(1)
    ran = run_task(lambda: BalanceSensor(task_id="wait", min_balance=9, poke_interval=0.05, timeout=0.2))
    assert ran.state == "failed"


def fast_poke():
    """A poke that retries within itself does not really wait in tests."""
    return {"sleep": lambda seconds: None}
