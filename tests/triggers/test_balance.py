from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.metrics import Told

from airflow_provider_sms.triggers.balance import BalanceTrigger


def fire(**changes):
    arguments = {"sms_conn_id": "sms_default", "min_balance": "100", "poke_interval": 0.01}

    async def first():
        return await anext(BalanceTrigger(**{**arguments, **changes}).run())

    return asyncio.run(first()).payload


BROKEN = {"kind": "status", "status": 500, "on": "balance"}


def test_it_fires_when_there_is_credit(sms_default, sandbox, metrics):
    """The event says the balance, as does the gauge, which is kept up to date while a sensor is deferred."""
    sandbox.state.set_balance(100)
    assert fire() == {"status": "success", "balance": 100.0, "post_paid": False}
    assert metrics.told == [Told("gauge", "sms.balance", 100.0, {"conn_id": "sms_default"})]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_the_service_may_say_that_the_credit_is_out(sms_default, sandbox, timeout):
    """A send's wait for credit, which has no end, goes on then; a sensor fails at once, as for any 403."""
    refusal = json.dumps({"errorCode": "InsufficientCredits"})
    sandbox.state.set_faults([{**BROKEN, "status": 403, "body": refusal, "times": 2}])
    event = fire(timeout=timeout)
    assert (event["status"], event.get("permanent")) == (("success", None) if timeout is None else ("error", True))


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


def test_a_later_triggerer_reads_at_once(sms_default):
    """After a restart an overdue reading is not delayed by another interval."""
    assert fire(poke_interval=3600.0, started_at=time.time() - 3601)["status"] == "success"


@pytest.mark.parametrize(("balance", "status"), [(99, "timeout"), (100, "success")])
def test_the_last_reading_is_at_the_timeout(sms_default, sandbox, balance, status):
    """The timeout counts from the sensor's first reading, as does the interval; credit that has come by then counts."""
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
        return await anext(BalanceTrigger("sms_default", "1", 60.0).run())

    assert asyncio.run(first()).payload["status"] == "success"
