"""Reading balances in the event loop that all triggers of a triggerer share, and the intervals between readings."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_sms.hooks.sms import SmsHook

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.service.responses import Balance


_T = TypeVar("_T")

_readings: dict[str, asyncio.Task[Balance]] = {}


async def read_balance(sms_conn_id: str) -> Balance:
    """Return the balance of a connection's account, from one request for all triggers that wait for it.

    However many triggers wait for an account, there is one request, and one thread, at a time: a service that is slow
    or silent delays only the triggers that wait for it. Cancelling a trigger does not cancel the request, since other
    triggers may wait for it; the request ends within the connection's timeouts, and its client with it.

    :param sms_conn_id: the connection; read for each request, as a poke does, so that a new token is used.
    :raises InputError: the connection is missing or wrong.
    :raises ServiceError: there is no usable response.
    """
    return await share_task(_readings, sms_conn_id, partial(_read_balance, sms_conn_id))


async def _read_balance(sms_conn_id: str) -> Balance:
    settings = await SmsHook(sms_conn_id).aget_settings()
    return await run_in_thread(partial(_request_balance, settings), name=f"balance-of-{sms_conn_id}")


def _request_balance(settings: ClientSettings) -> Balance:
    with settings.client() as client:
        return client.get_balance()


async def share_task(
    running: dict[str, asyncio.Task[_T]], key: str, start: Callable[[], Coroutine[Any, Any, _T]]
) -> _T:
    """Return the result of the running task with a key, which callers with the same key share; start it if none runs.

    :param running: the running tasks by key.
    :param start: returns the coroutine of a new task.
    """
    task = running.get(key)
    # A task of an event loop that was abandoned never ends.
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = running[key] = asyncio.create_task(start())
        task.add_done_callback(partial(_forget, running, key))
    return await asyncio.shield(task)


def _forget(running: dict[str, asyncio.Task[_T]], key: str, task: asyncio.Task[_T]) -> None:
    if running.get(key) is task:
        del running[key]
    if not task.cancelled():
        # Retrieved, since asyncio logs an exception that nobody retrieves.
        task.exception()


async def run_in_thread(function: Callable[[], _T], *, name: str) -> _T:
    """Call a blocking function in a new thread, and return its result.

    The loop's own executor is not used: its few threads, ``cpu_count() + 4``, serve every trigger of every provider.
    The thread is a daemon, so that a stopping triggerer does not wait for it.

    :param name: of the thread.
    """
    outcome: Future[_T] = Future()
    threading.Thread(target=_settle, args=(outcome, function), name=name, daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _settle(outcome: Future[_T], function: Callable[[], _T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(function())
    except BaseException as error:  # noqa: BLE001  # the caller raises it
        outcome.set_exception(error)


def backoff_interval(poke_interval: float, *, elapsed: float, seed: str) -> float:
    """Return the seconds to wait with exponential backoff, as Airflow's sensors in the mode ``reschedule`` wait.

    The wait before reading ``n + 1`` is drawn between ``b`` and ``2 b``, with ``b`` half of the interval at first and
    doubled by each reading, in whole seconds, at least 1. The number of the reading follows from the elapsed time
    alone, so that a restarted triggerer continues the sequence.

    :param poke_interval: the sensor's, in seconds.
    :param elapsed: seconds since the sensor's first reading.
    :param seed: seed of the jitter; the same for all readings of a sensor.
    """
    base, due, readings = poke_interval / 2, 0.0, 0
    while True:
        readings += 1
        least = max(int(base), 1)
        digest = hashlib.sha1(f"{seed}#{readings}".encode(), usedforsecurity=False).hexdigest()
        wait = least + int(digest, 16) % least
        due += wait
        if due > elapsed:
            return wait
        base *= 2
