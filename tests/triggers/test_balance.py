from __future__ import annotations

import asyncio
import pkgutil

import pytest

from airflow_provider_sms.triggers.balance import BalanceTrigger


def fire(**changes):
    arguments = {"sms_conn_id": "sms_default", "min_balance": "100", "poke_interval": 0.01, "max_failures": 2}

    async def first():
        return await anext(BalanceTrigger(**{**arguments, **changes}).run())

    return asyncio.run(first()).payload


def test_it_survives_serialising():
    """A triggerer makes the same trigger from what was stored."""
    trigger = BalanceTrigger("sms_default", "100", 60.0, 5)
    path, arguments = trigger.serialize()
    assert pkgutil.resolve_name(path) is BalanceTrigger
    assert BalanceTrigger(**arguments).serialize() == (path, arguments)


def test_its_arguments_hold_no_secret():
    """Trigger arguments are stored unencrypted: they name the connection, and nothing in it."""
    assert BalanceTrigger("sms_default", "100", 60.0, 5).serialize()[1].keys() == {
        "sms_conn_id",
        "min_balance",
        "poke_interval",
        "max_failures",
    }


def test_it_fires_when_there_is_credit(sms_default, sandbox):
    """The event says the balance."""
    sandbox.state.set_balance(100)
    assert fire() == {"status": "success", "balance": 100.0, "post_paid": False}


def test_errors_in_a_row_are_counted_not_errors_in_all(sms_default, sandbox):
    """A look that works forgives the failures before it."""
    sandbox.state.set_balance(1)
    bad = {"kind": "status", "status": 500, "on": "balance", "times": 2}
    good = {"kind": "none", "on": "balance"}
    sandbox.state.set_faults([bad, good, bad, good, bad, {**bad, "times": 1}])
    event = fire()
    assert (event["status"], event["permanent"]) == ("error", False)
    assert len(sandbox.state.requests) == 9


@pytest.mark.parametrize(
    "fields", [{"password": "wrong-token"}, {"password": None}, {"host": "ftp://127.0.0.1"}], ids=str
)
def test_what_waiting_cannot_mend_fires_at_once(sms_default, fields):
    """A wrong connection is a permanent error, without the token in its words."""
    sms_default(**fields)
    event = fire()
    assert (event["status"], event["permanent"], "wrong-token" in event["message"]) == ("error", True, False)


def test_many_waits_do_not_block_each_other(sms_default, sandbox):
    """The balance is read in threads: a slow answer does not stop the event loop."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.3, "on": "balance", "persistent": True}])
    arguments = ("sms_default", "1", 0.01, 2)

    async def longest_pause():
        loop = asyncio.get_running_loop()
        waits = [asyncio.create_task(anext(BalanceTrigger(*arguments).run())) for _ in range(3)]
        longest, last = 0.0, loop.time()
        while not all(wait.done() for wait in waits):
            await asyncio.sleep(0.005)
            longest, last = max(longest, loop.time() - last), loop.time()
        return longest

    assert asyncio.run(longest_pause()) < 0.25
