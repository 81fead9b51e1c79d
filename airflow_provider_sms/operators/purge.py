"""The operator that forgets what the ledger has kept for long enough."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from airflow.providers.common.compat.sdk import BaseOperator
from pydantic import BeforeValidator

from airflow_provider_sms.arguments import Arguments
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.errors import airflow_errors
from airflow_provider_sms.execution.options import LedgerConnection
from airflow_provider_sms.operators.checks import check_loaded
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context


def _days(retention: Any) -> int | None:
    """Return a retention in days; None means the configured one.

    :raises InputError: it is not a whole number of days.
    """
    if isinstance(retention, timedelta) and retention == timedelta(days=retention.days):
        retention = retention.days
    if retention is not None and (type(retention) is not int or retention < 0):
        raise InputError(
            "retention_days must be a whole number of days, at least 1, or a timedelta of whole days, or 0 for no end; "
            f"not {retention!r}"
        )
    return retention


class PurgeOptions(Arguments):
    """The checked arguments of a :class:`PurgeLedgerOperator`."""

    retention_days: Annotated[Any, BeforeValidator(_days)]
    ledger_conn_id: LedgerConnection


class PurgeLedgerOperator(BaseOperator):
    """Forget campaigns, with everybody whom they texted, and balances, once they are older than the retention.

    It forgets what ``airflow-sms purge`` forgets, and keeps the same: campaigns with unknown requests or
    requests under way, paused campaigns, and campaigns for which a task is waiting. A forgotten campaign protects
    nobody: a task that runs again under its name texts everybody again. Sends under way go on.

    Returns counts of what was forgotten, and of the campaigns that were kept. Running it again forgets nothing more.

    :param retention_days: whole days, or a timedelta of whole days, without activity after which a campaign is
        forgotten. None means ``[sms] retention_days``; 0 means that nothing is forgotten.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None means ``[sms]
        ledger_conn_id``, else a file on this machine. (templated)
    """

    template_fields: Sequence[str] = ("ledger_conn_id",)
    ui_color = "#e3f2ee"

    def __init__(
        self, *, retention_days: int | timedelta | None = None, ledger_conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.retention_days = retention_days
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopFlag()
        check_loaded(self, PurgeOptions)

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  # Airflow's
        """Forget what is older than the retention.

        :raises AirflowFailException: a retry could not help.
        :raises AirflowException: a retry could help.
        """
        from airflow_provider_sms.execution.retention import apply_retention

        self.stop_signal = StopFlag()
        with airflow_errors():
            return apply_retention(self.ledger_conn_id, _days(self.retention_days), self.stop_signal)

    def on_kill(self) -> None:
        """Stop after the current transaction; the next run goes on from there."""
        self.stop_signal.set()
