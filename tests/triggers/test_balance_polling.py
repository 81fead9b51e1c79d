from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseSensorOperator

from airflow_provider_sms.triggers.balance import BalanceTrigger
from airflow_provider_sms.triggers.balance_polling import backoff_interval, run_in_thread, share_task

MANY = 50
"""More than the threads of a loop's own executor on any machine: these are at most 32."""


class CountingExecutor(ThreadPoolExecutor):
    """A loop's own executor that counts its use."""

    used = 0

    def submit(self, *args, **kwargs):
        self.used += 1
        return super().submit(*args, **kwargs)


class SilentService:
    """A service that takes connections and never answers."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = []
        self.called = threading.Event()
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self._listener.accept()[0])
                self.called.set()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def silent(monkeypatch, airflow_home):
    """A service that never answers, behind the connection ``sms_silent``."""
    service = SilentService()
    connection = {"conn_type": "sms", "host": service.url, "password": "wont-be-read"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_SILENT", json.dumps(connection))
    yield service
    service.close()


def wait_for(sms_conn_id):
    return asyncio.create_task(anext(BalanceTrigger(sms_conn_id, "1", 60.0, 0).run()))


def looking_threads():
    return [thread for thread in threading.enumerate() if thread.name == "balance-of-sms_silent"]


async def cancel(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_one_request_serves_all_who_wait(sms_default, sandbox):
    """However many sensors wait for an account, it is asked once, and no thread of the loop's executor is used."""

    async def run():
        executor = CountingExecutor()
        asyncio.get_running_loop().set_default_executor(executor)
        events = await asyncio.gather(*(wait_for("sms_default") for _ in range(MANY)))
        return {event.payload["status"] for event in events}, executor.used

    assert asyncio.run(run()) == ({"success"}, 0)
    assert len(sandbox.state.requests) == 1


def test_a_silent_service_holds_up_nobody_else(sms_default, silent):
    """While many wait for a service that never answers, the others fire; it has one connection, of one thread."""

    async def run():
        stuck = [wait_for("sms_silent") for _ in range(MANY)]
        await run_in_thread(silent.called.wait, name="test")
        event = await wait_for("sms_default")
        seen = event.payload["status"], any(task.done() for task in stuck), len(silent.connections)
        threads = [thread.daemon for thread in looking_threads()]
        await cancel(stuck)
        return seen, threads

    assert asyncio.run(run()) == (("success", False, 1), [True])


def test_cancelled_triggers_leave_nothing_behind(silent):
    """The request of cancelled sensors ends with its response, and with it the thread and the connection."""
    complaints = []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        stuck = [wait_for("sms_silent") for _ in range(3)]
        await run_in_thread(silent.called.wait, name="test")
        await cancel(stuck)
        looks = asyncio.all_tasks() - {asyncio.current_task()}
        threads = looking_threads()
        silent.connections[0].shutdown(socket.SHUT_WR)
        await asyncio.wait(looks)
        return len(looks), threads

    looks, threads = asyncio.run(run())
    for thread in threads:
        thread.join()
    gc.collect()
    assert (looks, len(threads), complaints) == (1, 1, [])
    # The service sees that its connection is closed.
    silent.connections[0].settimeout(10)
    while silent.connections[0].recv(4096):
        pass


def test_an_abandoned_loop_waits_for_no_thread(silent):
    """A stopping triggerer does not wait for a silent service, and another loop makes its own request."""

    async def leave():
        stuck = wait_for("sms_silent")
        await run_in_thread(silent.called.wait, name="test")
        silent.called.clear()
        stuck.cancel()

    asyncio.run(leave())
    asyncio.run(leave())
    assert len(silent.connections) == 2


def test_a_running_task_is_shared():
    """A later caller waits for the same task; after its end a new one is started."""

    async def run():
        under_way, begun, may_end = {}, [], asyncio.Event()

        async def begin():
            begun.append(len(begun))
            await may_end.wait()
            return begun[-1]

        async def one():
            return await share_task(under_way, "account", begin)

        first, second = asyncio.create_task(one()), asyncio.create_task(one())
        await asyncio.sleep(0)
        may_end.set()
        return await first, await second, await one(), under_way

    assert asyncio.run(run()) == (0, 0, 1, {})


def test_an_error_reaches_all_that_wait():
    """All waiting callers get the error, and the next call starts a new task."""

    async def run():
        under_way, outcomes = {}, [OSError("gone"), "there"]

        async def begin():
            await asyncio.sleep(0)
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        waiting = (share_task(under_way, "account", begin) for _ in range(2))
        failed = await asyncio.gather(*waiting, return_exceptions=True)
        return [str(error) for error in failed], await share_task(under_way, "account", begin)

    assert asyncio.run(run()) == (["gone", "gone"], "there")


def test_a_cancelled_waiter_cancels_no_other():
    """A cancelled waiter does not end the task that others wait for."""

    async def run():
        under_way, may_end = {}, asyncio.Event()

        async def begin():
            await may_end.wait()
            return "there"

        first, second = (asyncio.create_task(share_task(under_way, "account", begin)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        may_end.set()
        return await second, first.cancelled()

    assert asyncio.run(run()) == ("there", True)


STARTED_AT = 1_790_000_000.25
WEEK = 7 * 24 * 3600.0


@pytest.mark.parametrize("poke_interval", [0.0, 0.5, 1.0, 60.0, 90.5, 3600.0])
@pytest.mark.parametrize("elapsed", [0.0, 1.0, 59.9, 600.0, 7_777.0, 86_400.0])
def test_the_intervals_are_airflows(poke_interval, elapsed):
    """A deferred sensor waits, to the second, as long as Airflow's own sensors do."""
    with DAG("dag", schedule=None):
        sensor = BaseSensorOperator(
            task_id="wait", mode="reschedule", poke_interval=poke_interval, exponential_backoff=True, timeout=WEEK * 99
        )
    try:
        airflows = sensor._get_next_poke_interval(STARTED_AT, lambda: elapsed, 1)
    except OverflowError:
        # Of an interval of 0, once there were a thousand looks.
        airflows = 1
    assert backoff_interval(poke_interval, elapsed=elapsed, seed=f"dag#wait#{STARTED_AT}") == airflows


def test_each_wait_is_longer_within_its_bounds():
    """The first is between half the interval and all of it, and the bounds double with each reading."""
    waits, elapsed = [], 0.0
    for _ in range(12):
        waits.append(backoff_interval(60.0, elapsed=elapsed, seed="any"))
        elapsed += waits[-1]
    assert [30 * 2**look <= wait < 60 * 2**look for look, wait in enumerate(waits)] == [True] * 12
    assert all(before <= after for before, after in pairwise(waits))


def test_a_later_triggerer_goes_on_where_the_other_was():
    """In the middle of an interval, the one after it is the next: the backoff does not start again."""
    first = backoff_interval(60.0, elapsed=0.0, seed="any")
    second = backoff_interval(60.0, elapsed=first, seed="any")
    assert backoff_interval(60.0, elapsed=first + second / 2, seed="any") == second


def test_sensors_that_begin_together_read_at_different_times():
    """The jitter depends on the seed."""
    assert len({backoff_interval(3600.0, elapsed=0.0, seed=f"dag#wait_{n}") for n in range(20)}) > 10
