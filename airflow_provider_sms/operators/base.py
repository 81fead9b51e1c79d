"""The base of the operators that send: their common arguments, and what Airflow calls."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.sms_task import SmsTask
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.options import OnUnknown


class SmsOperatorBase(SmsTask, BaseOperator):
    """The base of the operators that send; the sending itself is left to subclasses.

    A subclass ends its ``__init__`` with :func:`~airflow_provider_sms.operators.checks.check_loaded`.

    :param send_options: the service's Send Options, passed through.
    :param campaign: the campaign's name; within a campaign a message goes out at most once. None means one campaign for
        each task and DAG run, ``{dag_id}/{task_id}/{run_id}``.
    :param on_unknown: ``fail``, ``reconcile`` or ``resend``.
    :param sms_conn_id: the connection to send with.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None means ``[sms]
        ledger_conn_id``, else a file on this machine.
    """

    def __init__(
        self,
        *,
        send_options: dict[str, Any] | None = None,
        campaign: str | None = None,
        on_unknown: OnUnknown = "fail",
        sms_conn_id: str = SmsHook.default_conn_name,
        ledger_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.send_options = send_options
        self.campaign = campaign
        self.on_unknown = on_unknown
        self.sms_conn_id = sms_conn_id
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopFlag()

    def execute(self, context: Context) -> Any:
        """Send.

        :raises AirflowFailException: a retry could not help.
        :raises AirflowException: a retry could help.
        """
        return self.execute_complete(context)

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """Begin again from the top after a deferral.

        :param event: the event that ended the deferral: a moment, or a balance.
        """
        self.stop_signal = StopFlag()
        return self.send(context, event)

    @abstractmethod
    def send(self, context: Context, event: Any) -> Any:
        """Make one attempt, and return the task's result.

        :param event: the event that ended a deferral; None before any.
        """

    def on_kill(self) -> None:
        """Claim nothing more; ``execute`` ends once the requests in flight are recorded."""
        self.stop_signal.set()
