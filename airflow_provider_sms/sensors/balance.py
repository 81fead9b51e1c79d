"""The sensor that waits for credit."""

from __future__ import annotations

import time
from contextlib import closing
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
from pydantic import BeforeValidator, Field, model_validator

from airflow_provider_sms.arguments import Arguments, number
from airflow_provider_sms.exceptions import InputError, ServiceError
from airflow_provider_sms.execution.errors import airflow_errors
from airflow_provider_sms.execution.hidden import located, redacted_source
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.hooks.metrics import gauge_balance
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.base import SmsTask
from airflow_provider_sms.operators.checks import check_loaded, read_arguments
from airflow_provider_sms.operators.options import SmsConnection, TableOptions
from airflow_provider_sms.stop_flag import StopFlag
from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Self

    from airflow_provider_sms.service.responses import Balance


class _Options(Arguments):
    """The checked arguments of a :class:`BalanceSensor`, beside those about its source."""

    min_balance: Annotated[int | Decimal, BeforeValidator(number)] | None = Field(description="a number")
    source: Any
    sms_conn_id: SmsConnection

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.min_balance is None) == (self.source is None):
            raise InputError("exactly one of min_balance and source is needed")
        return self


class BalanceSensor(SmsTask, BaseSensorOperator):
    """Delay a DAG until there is credit: the balance is at least an amount, or the account is post-paid.

    The amount is ``min_balance``, or the estimated cost of a message to each recipient of ``source``.

    Returns ``{"balance": 1500.0, "post_paid": false}``. While the balance cannot be read for a transient reason (no
    connection, no usable response, 429), the sensor warns and goes on waiting; 401 and 403 fail at once, without
    retries. The arguments of the base, ``timeout``, ``soft_fail`` and the like, mean the same when the sensor is
    deferred, but its intervals are then all ``poke_interval``.

    :param min_balance: the lowest balance that suffices, in credits: a number, or a number as text. None means the
        estimated cost of ``source``. (templated)
    :param source: recipients, as for a :class:`~airflow_provider_sms.operators.sms.BulkSmsOperator`, in place of
        ``min_balance``. The worker reads them before it waits or, in the mode ``reschedule``, before each poke.
        (templated)
    :param message: the text for them, as for that operator. (templated)
    :param content_column: as for that operator.
    :param destination_column: as for that operator.
    :param default_region: as for that operator.
    :param cost_per_part: credits for an SMS part, as for that operator.
    :param sms_conn_id: the connection. (templated)
    :param deferrable: wait in the triggerer, without a worker slot. Default: Airflow's
        ``operators.default_deferrable``.
    """

    template_fields: Sequence[str] = ("min_balance", "source", "message", "sms_conn_id")
    ui_color = "#e3f2ee"

    def __init__(
        self,
        *,
        min_balance: float | str | Decimal | None = None,
        source: Any = None,
        message: str | None = None,
        content_column: str | None = None,
        destination_column: str = "destination",
        default_region: str | None = None,
        cost_per_part: float | Mapping[str, float] = 1,
        sms_conn_id: str = SmsHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_balance = min_balance
        self.source = source
        self.message = message
        self.content_column = content_column
        self.destination_column = destination_column
        self.default_region = default_region
        self.cost_per_part = cost_per_part
        self.sms_conn_id = sms_conn_id
        self.deferrable = deferrable
        self._started_at = 0.0
        self._needed: Decimal | None = None
        check_loaded(self, _Options, *([] if self.source is None else [TableOptions]))

    @property
    def source(self) -> Any:
        """The recipients; rows in memory are wrapped, so that Airflow cannot show them."""
        return self._source

    @source.setter
    def source(self, value: Any) -> None:
        self._source = redacted_source(value)

    def execute(self, context: Context) -> Any:
        """Poke until the balance suffices, or defer."""
        self._started_at = time.time()
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue:
        """Read the balance once; defer where it is too low and the sensor is deferrable.

        :raises AirflowFailException: for a wrong argument, connection or token.
        :raises AirflowException: the connection is not found, or the database of the source cannot be reached.
        """
        with airflow_errors():
            wanted = self._wanted()
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

    def _wanted(self) -> int | Decimal:
        """Return the lowest balance that suffices; the recipients are read once for all pokes of this process."""
        min_balance = read_arguments(self, _Options).min_balance
        if min_balance is not None:
            return min_balance
        if self._needed is None:
            self._needed = self._cost_of(read_arguments(self, TableOptions))
        return self._needed

    def _cost_of(self, options: TableOptions) -> Decimal:
        from airflow_provider_sms.messages.compose import Composer
        from airflow_provider_sms.planning.check import CheckedTable
        from airflow_provider_sms.planning.prices import Prices
        from airflow_provider_sms.recipients.sources import open_source

        column = options.destination_column
        composer = Composer(options.message, options.content_column, column, options.default_region)
        source = open_source(located(options.source), column=column)
        with closing(CheckedTable(composer, Prices(options.cost_per_part))) as table:
            table.read(source, StopFlag())
            table.decide(StopFlag())
        cost = table.estimate.cost
        words = by_count(table.to_send, "message costs", "messages cost")
        self.log.info("%d %s about %s %s", table.to_send, words, cost, by_count(cost, "credit"))
        return cost

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
