"""The sensor that waits for credit."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)
from pydantic import BeforeValidator, Field

from airflow_provider_sms.arguments import Arguments, number
from airflow_provider_sms.exceptions import ServiceError
from airflow_provider_sms.execution.errors import airflow_errors
from airflow_provider_sms.hooks.metrics import describe_on_assets, gauge_balance
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.base import SmsTask
from airflow_provider_sms.operators.options import SmsConnection, check_loaded, read_arguments
from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.service.responses import Balance


class _Options(Arguments):
    """The checked arguments of a :class:`BalanceSensor`."""

    min_balance: Annotated[int | Decimal, BeforeValidator(number)] = Field(description="a number")
    sms_conn_id: SmsConnection


class BalanceSensor(SmsTask, BaseSensorOperator):
    """Delay a DAG until there is credit: the balance is at least an amount, or the account is post-paid.

    Returns ``{"balance": 1500.0, "post_paid": false}``. While the balance cannot be read for a transient reason (no
    connection, no usable response, 429), the sensor warns and goes on waiting; 401 and 403 fail at once, without
    retries. The arguments of the base, ``timeout``, ``soft_fail`` and the like, mean the same when the sensor is
    deferred, but its intervals are then all ``poke_interval``.

    :param min_balance: the lowest balance that suffices, in credits: a number, or a number as text, such as the
        ``cost`` in the XCom ``plan`` of a task with ``dry_run=True``. (templated)
    :param sms_conn_id: the connection. (templated)
    :param deferrable: wait in the triggerer, without a worker slot. Default: Airflow's
        ``operators.default_deferrable``.
    """

    template_fields: Sequence[str] = ("min_balance", "sms_conn_id")
    ui_color = "#e3f2ee"

    def __init__(
        self,
        *,
        min_balance: float | str | Decimal,
        sms_conn_id: str = SmsHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_balance = min_balance
        self.sms_conn_id = sms_conn_id
        self.deferrable = deferrable
        self._started_at = 0.0
        check_loaded(self, _Options)

    def execute(self, context: Context) -> Any:
        """Poke until the balance suffices, or defer."""
        self._started_at = time.time()
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue:
        """Read the balance once; defer where it is too low and the sensor is deferrable.

        :raises AirflowFailException: for a wrong argument, connection or token.
        :raises AirflowException: the connection is not found.
        """
        with airflow_errors():
            wanted = read_arguments(self, _Options).min_balance
            balance = self._balance()
        if balance is not None and balance.covers(wanted):
            seen = {"balance": float(balance.amount), "post_paid": balance.post_paid}
            describe_on_assets(context, seen)
            return PokeReturnValue(is_done=True, xcom_value=seen)
        if balance is not None:
            self.log.info("The balance is %s, waiting for %s", balance.amount, wanted)
        if self.deferrable:
            # Raised from within the base's execute, so that the base handles soft_fail and never_fail.
            self.defer(
                trigger=BalanceTrigger(
                    sms_conn_id=self.sms_conn_id,
                    min_balance=str(wanted),
                    poke_interval=self.poke_interval,
                    started_at=self._started_at,
                    timeout=self.timeout,
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=max(self._started_at + self.timeout - time.time(), 0.0)),
            )
        return PokeReturnValue(is_done=False)

    def _balance(self) -> Balance | None:
        """Return the balance; None after a transient error, which may have passed by the next poke."""
        # Each poke reads the connection anew: somebody may have put a new token there.
        settings = self.hook.get_settings()
        try:
            balance = settings.read_balance()
        except ServiceError as error:
            if not error.transient:
                raise AirflowFailException(str(error)) from None
            self.log.warning("The balance cannot be read: %s", error)
            return None
        gauge_balance(self.sms_conn_id, balance)
        return balance

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the balance that the trigger read.

        :raises AirflowSensorTimeout: ``timeout`` has passed.
        :raises AirflowFailException: for a wrong connection or token.
        :raises ServiceError: the connection was not found.
        :raises AirflowSkipException: in place of the last two, if ``never_fail`` is set.
        """
        if event["status"] == "success":
            seen = {"balance": event["balance"], "post_paid": event["post_paid"]}
            describe_on_assets(context, seen)
            return seen
        if event["status"] == "timeout":
            raise AirflowSensorTimeout(event["message"])
        if self.never_fail:
            # Airflow before 3.3 honours never_fail only while it pokes.
            raise AirflowSkipException(event["message"])
        if event["permanent"]:
            raise AirflowFailException(event["message"])
        # Not one of Airflow's errors: with soft_fail each of those would skip the task here, but fails a poke.
        raise ServiceError(event["message"])
