"""What every operator that sends has in common: the ledger, the shield, XComs, and how a failure reaches Airflow."""

from __future__ import annotations

import traceback
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseOperator

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.execution.failures import describe, is_permanent
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.links import SmsSandboxLink
from airflow_provider_sms.stop_flag import StopFlag

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow.providers.common.compat.sdk import BaseOperatorLink, Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.backend import LedgerBackend

ON_UNKNOWN = ("fail", "ask", "resend")


class SmsOperatorBase(BaseOperator):
    """The part of a sending task that has to do with Airflow; not to be used by itself.

    :param campaign: within it a message goes out at most once. None: one campaign for each task and DAG run,
        ``{dag_id}/{task_id}/{run_id}``. (templated)
    :param on_unknown: ``fail``, ``ask`` or ``resend``.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None: ``[sms] ledger_conn_id``,
        else a file of this machine. (templated)
    """

    operator_extra_links: Collection[BaseOperatorLink] = (SmsSandboxLink(),)

    def __init__(
        self,
        *,
        send_options: dict[str, Any] | None = None,
        sms_conn_id: str = SmsHook.default_conn_name,
        campaign: str | None = None,
        on_unknown: str = "fail",
        ledger_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.send_options = send_options
        self.sms_conn_id = sms_conn_id
        self.campaign = campaign
        # What a template renders to may be None, which is no name.
        self._is_named = campaign is not None
        self._name_in_ledger: str | None = None
        self.on_unknown = on_unknown
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopFlag()

    def execute(self, context: Context) -> Any:
        """Send.

        :raises AirflowFailException: where a retry could not help.
        :raises AirflowException: where it could.
        """
        return self._attempt(context, None)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Go on once a person has said what is to become of unknown requests.

        :param event: Airflow's, with the options that were chosen and who chose.
        """
        return self._attempt(context, event)

    @abstractmethod
    def send(self, context: Context, event: Mapping[str, Any] | None) -> Any:
        """Do the work of one try, or of the part of it that comes after an answer.

        :param event: None where nothing was asked.
        """

    def _attempt(self, context: Context, event: Mapping[str, Any] | None) -> Any:
        self.stop_signal = StopFlag()
        self._name_in_ledger = None
        try:
            return self.send(context, event)
        except AirflowException:
            raise
        except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its words may quote a row
            self.log_unforeseen(error)
            cause = error if isinstance(error, SmsError) else None
            raise (AirflowFailException if is_permanent(error) else AirflowException)(describe(error)) from cause

    def on_kill(self) -> None:
        """Claim nothing more; ``execute`` ends once what is in flight is recorded."""
        self.stop_signal.set()

    def check_arguments(self) -> None:
        """Refuse arguments that cannot be obeyed.

        :raises InputError: names the argument.
        """
        if self.on_unknown not in ON_UNKNOWN:
            raise InputError(f"on_unknown must be one of {', '.join(ON_UNKNOWN)}, not {self.on_unknown!r}")
        if self.on_unknown == "ask":
            from airflow_provider_sms.execution.human_input import require_asking

            require_asking()
        if self._has_name:
            from airflow_provider_sms.ledger.campaign_names import read_name

            read_name(self.campaign)
        if self.send_options is not None and not isinstance(self.send_options, dict):
            raise InputError("send_options must be a dict of the service's Send Options, or None")

    def get_settings(self) -> ClientSettings:
        """Read the connection.

        :raises InputError: names the field that is missing or wrong.
        """
        return SmsHook(self.sms_conn_id).get_settings()

    def take_answer(self, entry: LedgerSession, event: Mapping[str, Any]) -> None:
        """Do what a person said about the requests that they were asked about, and record who it was.

        :raises AirflowFailException: they said that the task fails.
        :raises InputError: the answer is none of the options.
        """
        from airflow_provider_sms.execution.human_input import read_answer
        from airflow_provider_sms.ledger.decisions import FAIL, answer

        said, by = read_answer(event)
        count = answer(entry.store, entry.who, said, by)
        self.log.info("%s decided about %d unknown requests: %s", by, count, said)
        if said == FAIL:
            raise AirflowFailException(f"{by} decided that the task fails; {count} requests stay unknown")

    def log_unforeseen(self, error: Exception | None) -> None:
        """Log where an error that is not ours happened."""
        if error is not None and not isinstance(error, SmsError):
            # Where it happened, without its words: they may quote a row.
            self.log.error("%s at:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))

    def campaign_name(self, context: Context) -> str:
        """Return the campaign's name: as the ledger has it, once it was looked up there; empty where it is none."""
        from airflow_provider_sms.execution.ledger_session import claimant_of
        from airflow_provider_sms.ledger.campaign_names import default_name, read_name

        if self._name_in_ledger is not None:
            return self._name_in_ledger
        if not self._has_name:
            return default_name(claimant_of(context))
        try:
            return read_name(self.campaign)
        except InputError:
            return ""  # check_arguments says so, once the attempt has left its trace in the ledger

    def look_up_campaign(self, context: Context, store: LedgerBackend) -> str:
        """Look up what a ledger calls the campaign, and return its name; empty where it is none.

        :raises LedgerError: when the ledger cannot be read.
        """
        from airflow_provider_sms.execution.ledger_session import claimant_of
        from airflow_provider_sms.ledger.campaign_names import default_name_in, given_name_in

        if not self._has_name:
            self._name_in_ledger = default_name_in(store, claimant_of(context))
        elif self.campaign_name(context):
            self._name_in_ledger = given_name_in(store, str(self.campaign))
        return self.campaign_name(context)

    @property
    def _has_name(self) -> bool:
        return self._is_named or self.campaign is not None

    def push(self, context: Context, key: str, value: Any) -> None:
        """Push an XCom, unless the task pushes none."""
        if self.do_xcom_push:
            context["ti"].xcom_push(key=key, value=value)
