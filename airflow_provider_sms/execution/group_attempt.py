"""One attempt to text groups: the ledger, the one request, its response."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.execution.delivery import Delivery
from airflow_provider_sms.execution.human_input import record_request_decision
from airflow_provider_sms.execution.ledger_session import entered
from airflow_provider_sms.execution.telemetry import Telemetry
from airflow_provider_sms.execution.xcom import RESPONSES, for_xcom, push
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.ledger.decisions import to_resend
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.outgoing import Block, Outgoing
from airflow_provider_sms.reporting.summary import facts, summarise
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.sender import SendingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import GroupOptions, SendingTask
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


class GroupAttempt:
    """One attempt of a :class:`GroupSmsOperator`, or the leg of it that follows a deferral.

    :param read_options: returns the checked arguments. Called once the attempt is in its ledger.
    """

    def __init__(self, task: SendingTask, read_options: Callable[[], GroupOptions]) -> None:
        self._task = task
        self._read_options = read_options
        self._campaign = task.name_campaign(None)
        self._counts = SendCounts()
        self._telemetry = Telemetry(task.context, task.sms_conn_id, self._campaign, resumed=task.resumed)

    def run(self) -> dict[str, Any] | None:
        """Send, and return the raw response; None where the ledger holds none."""
        task = self._task
        # The ledger is closed once the end is noted there.
        with ExitStack() as stack, self._telemetry.until_ended(self._summary):
            session = stack.enter_context(entered(task.context, task.ledger_conn_id, resumed=task.resumed))
            self._campaign = task.name_campaign(session.store)
            self._telemetry.enter(session, self._campaign)
            response = self._send(session, self._read_options())
        describe_on_assets(task.context, facts(self._summary()))
        if self._counts.already_sent:
            log.info("The campaign had sent this text to these groups already; it was not sent again")
        return response

    def _send(self, session: LedgerSession, options: GroupOptions) -> dict[str, Any] | None:
        task, key = self._task, group_key(options.message, options.groups)

        def post(client: SmsClient, _: Sequence[Outgoing]) -> SendResponse:
            return client.send_group(options.message, options.groups, send_options=options.send_options)

        settings = SmsHook(task.sms_conn_id).get_settings()
        if task.resumed:
            record_request_decision(session, task.event)
        ledger = session.campaign(self._campaign, "group")
        delivery = Delivery(
            task,
            session,
            settings,
            ledger,
            SendingOptions(
                chunk_size=1,
                concurrency=1,
                resend_unknown=options.on_unknown == "resend",
                resend_requests=to_resend(session.store, self._campaign, session.who),
            ),
            total=1,
            counts=self._counts,
            telemetry=self._telemetry,
            asks=options.on_unknown == "ask",
        )
        delivery.begin()
        end = delivery.send(lambda: [Block.of([Outgoing(key, None, options.message)])], post)
        body = ledger.responses.to(key)
        response: dict[str, Any] | None = None if body is None else for_xcom(body)
        if response is not None:
            push(task.context, RESPONSES, [response])
        delivery.conclude(end)
        return response

    def _summary(self) -> dict[str, Any]:
        return summarise(self._campaign, 1, 0, self._counts)
