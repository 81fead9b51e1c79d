"""One attempt to text groups: the ledger, the one request, its response."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.exceptions import InputError, ServiceError
from airflow_provider_sms.execution.account import account_of, close_earlier, reconciliation_of
from airflow_provider_sms.execution.delivery import Delivery
from airflow_provider_sms.execution.failures import saying_nothing_more
from airflow_provider_sms.execution.ledger_session import entered
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.execution.xcom import for_xcom, push_responses
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.ledger import balances
from airflow_provider_sms.ledger.attempts import GROUP_DESTINATION
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.messages.blocks import Block
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.reporting.summary import facts, summarise
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.sender import SendingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import GroupOptions, SendingTask
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.holders import Holder
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


def text_groups(task: SendingTask, read_options: Callable[[], GroupOptions]) -> dict[str, Any] | None:
    """Make one attempt of a :class:`GroupSmsOperator`.

    :param read_options: returns the checked arguments. Called once the attempt is in its ledger.
    :return: the response; None where the ledger holds none.
    """
    campaign, counts = task.campaign, SendCounts()
    progress = Progress(task.context, task.sms_conn_id)

    def summary() -> dict[str, Any]:
        return summarise(campaign, 1, 0, counts)

    def post(client: SmsClient, _: Sequence[Outgoing]) -> SendResponse:
        return client.send_group(options.message, options.groups, send_options=options.send_options)

    # The ledger is closed once the end is noted there.
    may_have_sent = saying_nothing_more(lambda: counts.has_posted)
    with ExitStack() as stack, progress.until_ended(summary), may_have_sent:
        session = stack.enter_context(entered(task.context, task.ledger_conn_id))
        progress.enter(session, campaign)
        session.hold(campaign, task.sms_conn_id)
        options = read_options()
        key = group_key(options.message, options.groups)
        settings = task.hook.get_settings()
        ledger = session.campaign(campaign, "group", account_of(settings))
        reconciliation = reconciliation_of(session, settings, campaign)
        reconciles = options.on_unknown == "reconcile"
        if reconciles:
            counts.reconciled += close_earlier(session, ledger, reconciliation)
        held = ledger.holders([key]).get(key)
        _require_account(session, settings, held)
        if held is None or held.state != ACCEPTED:
            _observe(reconciliation)
        sending = SendingOptions(
            chunk_size=1,
            concurrency=1,
            resend_unknown=options.on_unknown == "resend",
        )
        delivery = Delivery(
            task,
            session,
            settings,
            ledger,
            sending,
            total=1,
            counts=counts,
            progress=progress,
            reconciliation=reconciliation,
            reconciles=reconciles,
            to_groups=True,
        )
        delivery.begin()
        end = delivery.send(
            [Block.of([Outgoing(key, None, options.message)])],
            lambda: iter([(key, np.array([GROUP_DESTINATION]))]),
            post,
        )
        if counts.already_sent:  # perhaps by another task, after the look above
            _require_account(session, settings, ledger.holders([key]).get(key))
        body = ledger.responses.to(key)
        response: dict[str, Any] | None = None if body is None else for_xcom(body)
        if response is not None:
            push_responses(task.context, [response])
        delivery.conclude(end)
    describe_on_assets(task.context, facts(summary()))
    if counts.already_sent:
        log.info("The campaign had sent this text to these groups already; it was not sent again")
    return response


def _require_account(session: LedgerSession, settings: ClientSettings, held: Holder | None) -> None:
    """Refuse a text that another account has sent to its own groups of the same names.

    :param held: what holds the text in the ledger; None where nothing does.
    :raises InputError: another account holds it, or one with another token.
    """
    sender = None if held is None else balances.account_of(session.store, [held.request_id])[held.request_id]
    if sender not in (None, settings.account):
        raise InputError(
            "Another account, or this one with another token, has sent this text to groups of these names in this "
            "campaign. This task sent nothing. If its account has groups of its own, name a campaign for each account. "
            "If only the token is new, the groups have had the text, or an unknown request holds it: mark the task as "
            "successful, or resolve the request"
        )


def _observe(reconciliation: Reconciliation) -> None:
    """Read the balance before a send that may be the account's first: without that reading, no charge could be seen."""
    try:
        reconciliation.observe()
    except ServiceError as error:
        log.info("The balance cannot be read before the send: %s", error)
