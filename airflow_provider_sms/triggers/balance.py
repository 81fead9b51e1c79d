"""The trigger that waits for credit."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_sms.exceptions import ServiceError, SmsError
from airflow_provider_sms.hooks.metrics import gauge_balance
from airflow_provider_sms.hooks.sms import SmsHook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class BalanceTrigger(BaseTrigger):
    """Fires once the balance is at least an amount, or the account is post-paid, or waiting for it has failed.

    It only reads: a trigger may run twice. Its event is
    ``{"status": "success", "balance": 1500.0, "post_paid": false}`` or
    ``{"status": "error", "message": …, "permanent": …}``. Its arguments are stored unencrypted; the connection's id is
    all that they say of the account.

    :param sms_conn_id: the connection.
    :param min_balance: a decimal number as text.
    :param poke_interval: seconds between two looks.
    :param max_failures: transient errors in a row that are ridden out.
    """

    def __init__(self, sms_conn_id: str, min_balance: str, poke_interval: float, max_failures: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is untyped
        self.sms_conn_id = sms_conn_id
        self.min_balance = min_balance
        self.poke_interval = poke_interval
        self.max_failures = max_failures

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Give the class's path and its arguments."""
        return (
            "airflow_provider_sms.triggers.balance.BalanceTrigger",
            {
                "sms_conn_id": self.sms_conn_id,
                "min_balance": self.min_balance,
                "poke_interval": self.poke_interval,
                "max_failures": self.max_failures,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at the balance until it suffices."""
        try:
            event = await self._wait()
        except SmsError as error:
            event = {"status": "error", "message": str(error), "permanent": not _transient(error)}
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]  # Airflow's is untyped

    async def _wait(self) -> dict[str, Any]:
        settings = await SmsHook(self.sms_conn_id).aget_settings()
        failures = 0
        with settings.client() as client:
            while True:
                try:
                    balance = await asyncio.to_thread(client.get_balance)
                except ServiceError as error:
                    failures += 1
                    if not error.transient or failures > self.max_failures:
                        raise
                    self.log.warning("The balance cannot be read (%d in a row): %s", failures, error)
                else:
                    failures = 0
                    gauge_balance(self.sms_conn_id, balance, in_triggerer=True)
                    if balance.post_paid or balance.amount >= Decimal(self.min_balance):
                        return {
                            "status": "success",
                            "balance": float(balance.amount),
                            "post_paid": balance.post_paid,
                        }
                    self.log.info("The balance is %s, waiting for %s", balance.amount, self.min_balance)
                await asyncio.sleep(self.poke_interval)


def _transient(error: SmsError) -> bool:
    return isinstance(error, ServiceError) and error.transient
