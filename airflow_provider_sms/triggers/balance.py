"""The trigger that waits for credit."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_sms.exceptions import ServiceError, SmsError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.metrics import gauge_balance
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.sending.stop_conditions import is_out_of_credit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_sms.service.responses import Balance

_READERS = ThreadPoolExecutor(4, thread_name_prefix="sms-balance")
"""The threads that read balances: those of the event loop's own executor serve every trigger of every provider."""


class BalanceTrigger(BaseTrigger):
    """Fire once the balance is at least an amount, the account is post-paid, or waiting has failed.

    The trigger only reads, because a trigger may run twice. Its event is
    ``{"status": "success", "balance": 1500.0, "post_paid": false}``,
    ``{"status": "error", "message": …, "permanent": …}`` or ``{"status": "timeout", "message": …}``. Its arguments are
    stored unencrypted; of the account they hold only the id of the connection.

    A transient error is logged, and the wait goes on. A restarted triggerer goes on with the next reading; ``timeout``
    does not start again.

    :param sms_conn_id: the connection.
    :param min_balance: a decimal number as text.
    :param poke_interval: seconds between two readings.
    :param started_at: time of the sensor's first reading, in seconds since the epoch. None means now, and the trigger
        begins by reading the balance.
    :param timeout: seconds after ``started_at`` at which the balance is read for the last time. None means no limit.
    """

    def __init__(
        self,
        sms_conn_id: str,
        min_balance: str,
        poke_interval: float,
        *,
        started_at: float | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is untyped
        self.sms_conn_id = sms_conn_id
        self.min_balance = min_balance
        self.poke_interval = poke_interval
        self.started_at = started_at
        self.timeout = timeout

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the path of the class and its arguments."""
        names = ("sms_conn_id", "min_balance", "poke_interval", "started_at", "timeout")
        return "airflow_provider_sms.triggers.balance.BalanceTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Read the balance until it suffices."""
        try:
            event = await self._wait()
        except SmsError as error:
            event = {"status": "error", "message": str(error), "permanent": not error.transient}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]  # Airflow's is untyped

    async def _wait(self) -> dict[str, Any]:
        # Not run_in_executor: reading a connection in the thread calls back into this event loop.
        read = sync_to_async(self._read_balance, thread_sensitive=False, executor=_READERS)
        started_at = time.time() if self.started_at is None else self.started_at
        if self.started_at is not None:
            # The sensor has just read the balance, unless this is a later triggerer, whose reading is overdue.
            await asyncio.sleep(self._interval(0.0) - _seconds_since(started_at))
        while True:
            try:
                balance = await read()
            except ServiceError as error:
                # A wait without an end, which is one for credit, goes on where the service says that credit is out.
                if not (error.transient or (self.timeout is None and is_out_of_credit(error))):
                    raise
                last = f"the balance cannot be read: {error}"
                self.log.warning("Waiting, since %s", last)
            else:
                gauge_balance(self.sms_conn_id, balance, in_triggerer=True)
                if balance.covers(Decimal(self.min_balance)):
                    return {"status": "success", "balance": float(balance.amount), "post_paid": balance.post_paid}
                last = f"the balance is {balance.amount}, and less than {self.min_balance}"
                self.log.info("Waiting, since %s", last)
            elapsed = _seconds_since(started_at)
            if self.timeout is not None and elapsed >= self.timeout:
                seconds = by_count(self.timeout, "second")
                return {"status": "timeout", "message": f"After {self.timeout} {seconds}, {last}"}
            await asyncio.sleep(self._interval(elapsed))

    def _interval(self, elapsed: float) -> float:
        return self.poke_interval if self.timeout is None else min(self.poke_interval, self.timeout - elapsed)

    def _read_balance(self) -> Balance:
        # The connection is read for each request, as a poke does, so that a new token is used.
        return SmsHook(self.sms_conn_id).get_settings().read_balance()


def _seconds_since(moment: float) -> float:
    # Never negative: the clock of this machine may be behind the one that set the time.
    return max(time.time() - moment, 0.0)
