"""What every operator that sends has in common: the ledger, the shield, XComs, and how a failure reaches Airflow."""

from __future__ import annotations

import json
import os
import socket
import time
import traceback
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseOperator

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.operators.failures import describe, failure, is_permanent
from airflow_provider_sms.sending.stop import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.sending.backlog import Outgoing
    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.ledger import CampaignLedger
    from airflow_provider_sms.sending.options import SendingOptions
    from airflow_provider_sms.sending.tally import Tally
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

ON_UNKNOWN = ("fail", "ask", "resend")


class CampaignOperator(BaseOperator):
    """The part of a sending task that has to do with Airflow; not to be used by itself.

    :param campaign: within it a message goes out at most once. None: one campaign for each task and DAG run.
        (templated)
    :param on_unknown: ``fail`` or ``resend``.
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None: ``[sms] ledger_conn_id``,
        else a file of this machine. (templated)
    """

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
        self.on_unknown = on_unknown
        self.ledger_conn_id = ledger_conn_id
        self.stop_signal = StopSignal()

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
            raise InputError("on_unknown='ask' is not available in this version: use 'fail' or 'resend'")
        if self.campaign is not None and not (isinstance(self.campaign, str) and self.campaign.strip()):
            raise InputError("campaign must be a name that is not empty, or None for one of each task and DAG run")
        if self.send_options is not None and not isinstance(self.send_options, dict):
            raise InputError("send_options must be a dict of the service's Send Options, or None")

    def get_settings(self) -> ClientSettings:
        """Read the connection.

        :raises InputError: names the field that is missing or wrong.
        """
        return SmsHook(self.sms_conn_id).get_settings()

    def raise_for(self, error: Exception) -> None:
        """Raise an error as Airflow's: without retries where none could help, without the words of a foreign one."""
        cause = error if isinstance(error, SmsError) else None
        raise (AirflowFailException if is_permanent(error) else AirflowException)(describe(error)) from cause

    def deliver(
        self,
        context: Context,
        settings: ClientSettings,
        blocks: Iterable[Sequence[Outgoing]],
        post: Callable[[SmsClient, Sequence[Outgoing]], SendResponse],
        *,
        total: int,
        options: SendingOptions,
        kind: str,
        tally: Tally,
        finish: Callable[[CampaignLedger], None],
    ) -> None:
        """Send, with the ledger, and raise unless every message was accepted now or before.

        :param settings: of the client.
        :param post: posts one request.
        :param total: messages in all.
        :param kind: ``bulk`` or ``group``.
        :param tally: counts what becomes of them.
        :param finish: called with the ledger when sending has ended, however it did, before anything is raised.
        :raises AirflowFailException: where a retry could not help.
        :raises AirflowException: where it could.
        """
        from airflow_provider_sms.operators.ledger import open_ledger
        from airflow_provider_sms.sending.ledger import CampaignLedger
        from airflow_provider_sms.sending.progress import Progress
        from airflow_provider_sms.sending.sender import Sender
        from airflow_provider_sms.sending.shield import run_shielded

        stop = self.stop_signal
        with (
            settings.client(pool_size=options.concurrency) as client,
            closing(open_ledger(self.ledger_conn_id)) as store,
        ):
            ledger = CampaignLedger(store, self.campaign_name(context), _claimant(context), kind=kind)
            ledger.lapse()
            self.log.info("Campaign %s, remembered in %s", ledger.campaign_name, store.description)
            sender = Sender(
                ledger,
                lambda messages: post(client, messages),
                post_seconds=client.longest_call,
                options=options,
                stop=stop,
                tally=tally,
            )
            progress = Progress(total, time.monotonic)

            def heartbeat() -> None:
                if line := progress.line(tally.settled):
                    self.log.info("%s", line)

            try:
                shielded = run_shielded(lambda: sender.run(blocks), on_interrupt=stop.set, heartbeat=heartbeat)
            except BaseException:
                # Whatever ended the wait, a sender that still runs must not go on claiming.
                stop.set()
                raise
            self.log_unforeseen(sender.error)
            finish(ledger)
        if shielded.interruption is not None:
            raise shielded.interruption
        unsent = tally.settled < total or tally.not_sent > tally.partial
        failed = failure(
            ledger.campaign_name,
            tally,
            sender.error,
            stopped=stop.is_set() and unsent,
            resend_unknown=options.resend_unknown,
        )
        if failed is not None:
            raise (AirflowFailException if failed.permanent else AirflowException)(failed.words)
        if tally.settled != total:
            raise AirflowFailException(f"The counts do not add up: {tally.settled} of {total}. Please report it")

    def log_unforeseen(self, error: Exception | None) -> None:
        """Log where an error that is not ours happened."""
        if error is not None and not isinstance(error, SmsError):
            # Where it happened, without its words: they may quote a row.
            self.log.error("%s at:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))

    def campaign_name(self, context: Context) -> str:
        """Give the campaign's name, by default that of the task and the DAG run."""
        ti = context["ti"]
        return f"{ti.dag_id}.{ti.task_id}.{ti.run_id}" if self.campaign is None else self.campaign

    def push(self, context: Context, key: str, value: Any) -> None:
        """Push an XCom, unless the task pushes none."""
        if self.do_xcom_push:
            context["ti"].xcom_push(key=key, value=value)


def responses_of(ledger: CampaignLedger, limit: int) -> list[Any] | dict[str, Any]:
    """Give the raw answers to this task's requests, of all its tries; above the limit only how many there are."""
    count = ledger.count_responses()
    if count > limit:
        return {"truncated": True, "requests": count}
    return [for_xcom(body) for body in ledger.responses(limit)]


def for_xcom(body: str) -> Any:
    """Give an answer as an XCom can hold it: half an emoji, which no database takes, becomes a question mark."""
    whole = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    return json.loads(whole)


def _claimant(context: Context) -> Claimant:
    from airflow_provider_sms.sending.claims import Claimant

    ti = context["ti"]
    return Claimant(
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        host=socket.gethostname(),
        pid=os.getpid(),
    )
