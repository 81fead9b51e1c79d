from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from support.airflow import run_task

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.sensors.balance import BalanceSensor

MODES = [{}, {"mode": "reschedule"}, {"deferrable": True}]


@pytest.fixture
def wait(sms_default, ledger_path):
    """Run a BalanceSensor in Airflow."""
    return lambda **arguments: run_task(
        lambda: BalanceSensor(task_id="wait", min_balance=100, poke_interval=0.05, timeout=20, **arguments)
    )


def recorded(ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection:
        return connection.execute("SELECT conn_id, amount FROM sms_balance ORDER BY id").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", MODES, ids=str)
def test_what_it_sees_is_recorded(wait, sandbox, ledger_path, arguments):
    """In each mode: what was too little, and what suffices, of which a triggerer tells."""
    open_ledger(None).close()
    sandbox.state.set_balance(10)

    def top_up():
        while len([r for r in sandbox.state.requests if r.operation == "balance"]) < 2:
            pass
        sandbox.state.set_balance("700.5")

    thread = threading.Thread(target=top_up)
    thread.start()
    ran = wait(**arguments)
    thread.join()
    assert ran.state == "success"
    assert recorded(ledger_path) == [("sms_default", "10"), ("sms_default", "700.5")]


@pytest.mark.parametrize("arguments", MODES, ids=str)
def test_a_post_paid_account_is_recorded_as_such(wait, sandbox, ledger_path, arguments):
    """It has no amount."""
    open_ledger(None).close()
    sandbox.state.set_post_paid(True)
    assert wait(**arguments).state == "success"
    assert recorded(ledger_path) == [("sms_default", None)]


def test_a_sensor_makes_no_ledger(wait, sandbox, ledger_path):
    """Where nothing was sent it passes all the same."""
    sandbox.state.set_balance(500)
    assert wait().state == "success"
    assert not ledger_path.exists()


def test_a_ledger_that_fails_does_not_stop_a_sensor(wait, sandbox, ledger_path):
    """A DAG does not wait because a balance cannot be recorded."""
    sandbox.state.set_balance(500)
    ledger_path.write_text("not a database, but long enough to be one" * 10)
    ran = wait()
    assert (ran.state, "Balances are not recorded in the ledger" in ran.log) == ("success", True)
