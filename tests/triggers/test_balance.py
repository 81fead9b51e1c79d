from __future__ import annotations

import asyncio
import pkgutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.metrics import Told

from airflow_provider_sms.triggers.balance import BalanceTrigger


def fire(**changes):
    arguments = {"sms_conn_id": "sms_default", "min_balance": "100", "poke_interval": 0.01, "max_failures": 2}

    async def first():
        return await anext(BalanceTrigger(**{**arguments, **changes}).run())

    return asyncio.run(first()).payload


BROKEN = {"kind": "status", "status": 500, "on": "balance"}
EVERYTHING = {
    "sms_conn_id": "sms_default",
    "min_balance": "100",
    "poke_interval": 60.0,
    "max_failures": 5,
    "failures": 1,
    "started_at": 1_790_000_000.25,
    "timeout": 3600.0,
}


def test_it_survives_serialising():
    """A triggerer makes the same trigger from what was stored; that names the connection, and nothing in it."""
    path, arguments = BalanceTrigger(**EVERYTHING).serialize()
    assert pkgutil.resolve_name(path) is BalanceTrigger
    assert arguments == EVERYTHING


def test_it_fires_when_there_is_credit(sms_default, sandbox, metrics):
    """The event says the balance, as does the gauge, which is kept up to date while a sensor is deferred."""
    sandbox.state.set_balance(100)
    assert fire() == {"status": "success", "balance": 100.0, "post_paid": False}
    assert metrics.told == [Told("gauge", "sms.balance", 100.0, {"conn_id": "sms_default"})]


def test_errors_in_a_row_are_counted_not_errors_in_all(sms_default, sandbox):
    """A successful reading resets the count."""
    sandbox.state.set_balance(1)
    bad = {**BROKEN, "times": 2}
    good = {"kind": "none", "on": "balance"}
    sandbox.state.set_faults([bad, good, bad, good, bad, {**bad, "times": 1}])
    event = fire()
    assert (event["status"], event["permanent"]) == ("error", False)
    assert len(sandbox.state.requests) == 9


@pytest.mark.parametrize(
    "fields", [{"password": "wrong-token"}, {"password": None}, {"host": "ftp://127.0.0.1"}], ids=str
)
def test_an_error_that_waiting_cannot_end_fires_at_once(sms_default, fields):
    """A wrong connection is a permanent error, without the token in its words."""
    sms_default(**fields)
    event = fire()
    assert (event["status"], event["permanent"], "wrong-token" in event["message"]) == ("error", True, False)


def test_a_connection_that_is_not_found_may_be_found_by_a_retry(airflow_home):
    """Airflow says the same of a look-up that failed, as while its server restarts."""
    event = fire(sms_conn_id="nowhere")
    assert (event["status"], event["permanent"], "nowhere" in event["message"]) == ("error", False, True)


@pytest.mark.parametrize(
    ("changes", "said", "looks"), [({"failures": 1}, "3 times", 2), ({"max_failures": 0}, "1 time", 1)]
)
def test_the_failures_of_the_sensor_count(sms_default, sandbox, changes, said, looks):
    """Failures before the deferral belong to the same row, and the message counts them; None tolerates any number."""
    sandbox.state.set_faults([{**BROKEN, "times": 9}])
    event = fire(**changes)
    assert (event["permanent"], f"could not be read {said} in a row" in event["message"]) == (False, True)
    assert len(sandbox.state.requests) == looks
    assert fire(max_failures=None)["status"] == "success"
    assert len(sandbox.state.requests) == 10


def test_it_waits_before_its_first_reading(sms_default, sandbox):
    """The sensor has just read the balance: the trigger's first reading is an interval later."""

    async def looks():
        trigger = BalanceTrigger("sms_default", "1", 3600.0, 2, started_at=time.time())
        waiting = asyncio.create_task(anext(trigger.run()))
        for _ in range(5):
            await asyncio.sleep(0)
        looks = asyncio.all_tasks() - {asyncio.current_task(), waiting}
        waiting.cancel()
        return looks

    assert asyncio.run(looks()) == set()


def test_a_later_triggerer_reads_at_once(sms_default):
    """After a restart an overdue reading is not delayed by another interval."""
    assert fire(poke_interval=3600.0, started_at=time.time() - 3601)["status"] == "success"


@pytest.mark.parametrize(("balance", "status"), [(99, "timeout"), (100, "success")])
def test_the_last_reading_is_at_the_timeout(sms_default, sandbox, balance, status):
    """The timeout counts from the sensor's first reading; credit that has arrived by then counts."""
    sandbox.state.set_balance(balance)
    event = fire(poke_interval=3600.0, started_at=time.time() - 59.95, timeout=60.0)
    assert (event["status"], len(sandbox.state.requests)) == (status, 1)


def test_a_balance_is_read_on_threads_of_its_own(sms_default, sandbox):
    """Those of the event loop's own executor serve every trigger of every provider."""

    class Unused(ThreadPoolExecutor):
        def submit(self, *_, **__):
            raise AssertionError

    async def first():
        asyncio.get_running_loop().set_default_executor(Unused())
        return await anext(BalanceTrigger("sms_default", "1", 60.0, 0).run())

    assert asyncio.run(first()).payload["status"] == "success"
