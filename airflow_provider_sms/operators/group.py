"""The operator that texts groups."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.xcom import for_xcom
from airflow_provider_sms.operators.base import SmsOperatorBase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse


class GroupSmsOperator(SmsOperatorBase):
    """Text groups that the service knows, once.

    A retry never texts a group twice: the send is claimed in the ledger first, as one of
    :class:`BulkSmsOperator` is. Returns the raw answer, also when an earlier try or run of the campaign sent it; the
    XCom ``responses`` is a list with it.

    :param message: the text. (templated)
    :param groups: at least one name. (templated)
    :param send_options: the service's Send Options, passed through. (templated)
    :param sms_conn_id: the connection. (templated)
    :param campaign: within it the text goes to the groups at most once. None: ``{dag_id}/{task_id}/{run_id}``.
        (templated)
    :param on_unknown: what becomes of a send whose answer was lost. ``fail``: the task fails, and it is not sent again;
        ``resend``: it is, at the risk of texting people twice; ``ask``: the task waits, without a slot, for a person to
        decide in Airflow's required actions (Airflow 3.1 and newer).
    :param ledger_conn_id: an Airflow connection to PostgreSQL that holds the ledger. None: ``[sms] ledger_conn_id``,
        else a file of this machine. (templated)
    """

    template_fields: Sequence[str] = (
        "message",
        "groups",
        "send_options",
        "campaign",
        "sms_conn_id",
        "ledger_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"send_options": "json"}
    ui_color = "#e3f2ee"

    def __init__(self, *, message: str, groups: Sequence[str] | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message
        self.groups = groups

    def send(self, context: Context, event: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Send, and give the raw answer.

        :param event: what a person answered, where this try asked one; None where not.
        """
        from airflow_provider_sms.execution.delivery import Delivery
        from airflow_provider_sms.execution.ledger_session import entered
        from airflow_provider_sms.execution.telemetry import Telemetry
        from airflow_provider_sms.hooks.asset_events import describe_on_assets
        from airflow_provider_sms.ledger.decisions import to_resend
        from airflow_provider_sms.messages.keys import check_groups, group_key
        from airflow_provider_sms.messages.outgoing import Block, Outgoing
        from airflow_provider_sms.reporting.summary import facts, summarise
        from airflow_provider_sms.sending.counts import SendCounts
        from airflow_provider_sms.sending.sender import SendingOptions

        answers: list[dict[str, Any]] = []
        tally = SendCounts()
        campaign = self.campaign_name(context)
        watch = Telemetry(context, self.sms_conn_id, campaign, resumed=event is not None)

        def post(client: SmsClient, _: Sequence[Outgoing]) -> SendResponse:
            return client.send_group(message, groups, send_options=self.send_options)

        def finish(ledger: CampaignLedger, _: Exception | None) -> None:
            body = ledger.responses.to(key)
            if body is not None:
                answers.append(for_xcom(body))
                self.push(context, "responses", answers)

        with ExitStack() as stack, watch.until_ended(lambda: summarise(campaign, 1, 0, tally)):
            # Closed once the end is noted there.
            entry = stack.enter_context(entered(context, self.ledger_conn_id, resumed=event is not None))
            campaign = self.look_up_campaign(context, entry.store)
            watch.enter(entry, campaign)
            self.check_arguments()
            groups = [self.groups] if isinstance(self.groups, str) else list(self.groups)
            check_groups(groups)
            message = self._text()
            key = group_key(message, groups)
            settings = self.get_settings()
            if event is not None:
                self.take_answer(entry, event)
            Delivery(
                self,
                context,
                entry,
                settings,
                lambda: [Block.of([Outgoing(key, None, message)])],
                post,
                total=1,
                options=SendingOptions(
                    chunk_size=1,
                    concurrency=1,
                    resend_unknown=self.on_unknown == "resend",
                    resend_requests=to_resend(entry.store, campaign, entry.who),
                ),
                kind="group",
                tally=tally,
                watch=watch,
                finish=finish,
            ).run()
        describe_on_assets(context, facts(summarise(campaign, 1, 0, tally)))
        if tally.already_sent:
            self.log.info("The campaign had sent this text to these groups already; it was not sent again")
        return answers[0] if answers else None

    def _text(self) -> str:
        from airflow_provider_sms.messages.texts import MISSING_WORDS, tidy_text

        if not isinstance(self.message, str) or not self.message.strip():
            raise InputError("message must be a text that is not empty")
        message = tidy_text(self.message)
        if message in MISSING_WORDS:
            raise InputError(f"message is {message!r}: was there no value to render it from?")
        return message
