"""Looks at balances from the event loop that all triggers of a triggerer share."""

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

_under_way: dict[str, asyncio.Task[Balance]] = {}


async def balance_of(sms_conn_id: str) -> Balance:
    """Read a connection and the balance of its account, together with whoever waits for the same at the moment.

    However many triggers wait for an account, there is one request, and one thread, at a time: a service that is slow
    or silent delays those that wait for it, and nothing else in the triggerer. A waiter that is cancelled ends no
    look, since others may wait for it; a look ends by itself within the connection's timeouts, and its client with it.

    :param sms_conn_id: the connection; read for each look, as a poke does, so that a new token is taken up.
    :raises InputError: the connection is missing or wrong.
    :raises ServiceError: there is no usable answer.
    """
    return await shared(_under_way, sms_conn_id, partial(_look, sms_conn_id))


async def _look(sms_conn_id: str) -> Balance:
    settings = await SmsHook(sms_conn_id).aget_settings()
    return await in_own_thread(partial(_read, settings), name=f"balance-of-{sms_conn_id}")


def _read(settings: ClientSettings) -> Balance:
    with settings.client() as client:
        return client.get_balance()


async def shared(under_way: dict[str, asyncio.Task[_T]], key: str, begin: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Wait for what is under way; begin it where nothing is.

    :param under_way: what is, by key.
    :param key: who gives the same key waits for the same.
    :param begin: called without arguments.
    """
    task = under_way.get(key)
    # A task of a loop that was left in the middle never ends.
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = under_way[key] = asyncio.create_task(begin())
        task.add_done_callback(partial(_forget, under_way, key))
    return await asyncio.shield(task)


def _forget(under_way: dict[str, asyncio.Task[_T]], key: str, task: asyncio.Task[_T]) -> None:
    if under_way.get(key) is task:
        del under_way[key]
    if not task.cancelled():
        # Taken note of: asyncio would complain of an error that nobody waits for any more.
        task.exception()


async def in_own_thread(function: Callable[[], _T], *, name: str) -> _T:
    """Call a function that blocks, and wait for what it gives or raises.

    Not in the loop's own executor: its few threads, ``cpu_count() + 4``, are for every trigger of every provider. The
    thread is a daemon: a triggerer that stops does not wait for it.

    :param function: called without arguments.
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
    except BaseException as error:  # noqa: BLE001  # whoever waits raises it
        outcome.set_exception(error)


def backed_off(poke_interval: float, *, elapsed: float, seed: str) -> float:
    """Give the seconds to wait with exponential backoff, as Airflow's sensors of mode ``reschedule`` do.

    The wait before look ``n + 1`` is drawn between ``b`` and ``2 b``, with ``b`` half of the interval at first and
    doubled by each look, cut to whole seconds, at least 1. Which look it is follows from the time elapsed alone, so
    that a triggerer that was started anew goes on where the other one was.

    :param poke_interval: the sensor's, in seconds.
    :param elapsed: seconds since the sensor's first look.
    :param seed: what the jitter is drawn from; the same for all looks of a sensor.
    """
    base, due, looks = poke_interval / 2, 0.0, 0
    while True:
        looks += 1
        least = max(int(base), 1)
        digest = hashlib.sha1(f"{seed}#{looks}".encode(), usedforsecurity=False).hexdigest()
        wait = least + int(digest, 16) % least
        due += wait
        if due > elapsed:
            return wait
        base *= 2
