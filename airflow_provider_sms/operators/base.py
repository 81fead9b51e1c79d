"""The base of the operators that send: their common arguments, and how a failure reaches Airflow."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseOperator

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.failures import cause_of, describe, is_permanent, log_unforeseen
from airflow_provider_sms.execution.options import SendingTask
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
        return self._attempt(context)

    def execute_complete(self, context: Context, event: Any) -> Any:
        """Continue after a deferral.

        :param event: the event that ended the deferral: a moment, or a balance.
        """
        return self._attempt(context, event)

    @abstractmethod
    def send(self, task: SendingTask) -> Any:
        """Make one attempt, and return the task's result."""

    def _attempt(self, context: Context, event: Any = None) -> Any:
        self.stop_signal = StopFlag()
        name = self.campaign_name(context)
        task = SendingTask(context, self.hook, self.ledger_conn_id, self.stop_signal, name, event)
        try:
            return self.send(task)
        except AirflowException:
            raise
        except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its error may quote a row
            log_unforeseen(error)
            failure = AirflowFailException if is_permanent(error) else AirflowException
            raise failure(describe(error)) from cause_of(error)

    def on_kill(self) -> None:
        """Claim nothing more; ``execute`` ends once the requests in flight are recorded."""
        self.stop_signal.set()

    def campaign_name(self, context: Context) -> str:
        """Return the campaign's name; empty if the name is refused later."""
        from airflow_provider_sms.execution.ledger_session import claimant_of
        from airflow_provider_sms.ledger.name_rules import default_name, read_name

        if self.campaign is None:
            return default_name(claimant_of(context))
        try:
            return read_name(self.campaign)
        except InputError:
            return ""  # read_options raises the error, once the attempt has left its trace in the ledger
