"""One attempt to text groups: the ledger, the one request, its response."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.exceptions import InputError, LedgerError, ServiceError
from airflow_provider_sms.execution.account import account_of, close_earlier, reconciliation_of
from airflow_provider_sms.execution.delivery import Delivery, DeliveryEnd
from airflow_provider_sms.execution.failures import failing_for_good_if_lost, graver
from airflow_provider_sms.execution.ledger_session import entered
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.execution.xcom import for_xcom, push_responses
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.ledger import balances
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.preview import GROUP_DESTINATION
from airflow_provider_sms.messages.blocks import Block
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.outgoing import Outgoing
from airflow_provider_sms.reporting.row_counts import RowCounts, count_keys
from airflow_provider_sms.reporting.summary import Sums, add_up, facts, summarise
from airflow_provider_sms.sending.sender import SendingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import GroupOptions, SendingTask
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Holder
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


def text_groups(task: SendingTask, read_options: Callable[[], GroupOptions]) -> dict[str, Any] | None:
    """Make one attempt of a :class:`GroupSmsOperator`.

    :param read_options: returns the checked arguments. Called once the attempt is in its ledger.
    :return: the response; None where the ledger holds none.
    """
    campaign, counts, sums = task.campaign, RowCounts(not_sent=1), Sums()
    progress = Progress(task.context, task.sms_conn_id)

    def summary() -> dict[str, Any]:
        return summarise(campaign, counts, sums)

    def post(client: SmsClient, _: Sequence[Outgoing]) -> SendResponse:
        return client.send_group(options.message, options.groups, send_options=options.send_options)

    # The ledger is closed once the end is noted there.
    with ExitStack() as stack, progress.until_ended(summary):
        session = stack.enter_context(entered(task.context, task.ledger_conn_id, stop=task.stop))
        progress.enter(session, campaign)
        session.hold(campaign, task.sms_conn_id)
        options = read_options()
        key = group_key(options.message, options.groups)
        settings = task.hook.get_settings()
        ledger = session.campaign(campaign, "group", account_of(settings))
        reconciliation = reconciliation_of(session, settings, campaign)
        if options.on_unknown == "reconcile":
            close_earlier(session, ledger, reconciliation)
        held = ledger.holders([key]).get(key)
        _require_account(session, settings, held)
        is_sent = held is not None and held.state == ACCEPTED
        if not is_sent:
            _observe(reconciliation)
        sending = SendingOptions(chunk_size=1, concurrency=1, on_unknown=options.on_unknown)
        delivery = Delivery(task, session, settings, ledger, sending, progress, reconciliation, to_groups=True)
        stack.enter_context(failing_for_good_if_lost(ledger))
        delivery.begin()
        progress.begin(1, int(is_sent), {})
        block = Block.of([Outgoing(key, None, options.message)])

        def free_blocks() -> list[Block]:
            return [] if ledger.holders([key]) else [block]

        end = DeliveryEnd()
        if not is_sent:
            counts = RowCounts(unknown=1)  # until it is counted
            end = delivery.send(
                [] if held else [block],
                free_blocks,
                lambda: iter([(key, np.array([GROUP_DESTINATION]))]),
                post,
                held_by=[held.request_id] if held else [],
            )
        counts, sums, end = _count(ledger, key, end)
        if counts.already_sent:  # perhaps by another task, after the look above
            _require_account(session, settings, ledger.holders([key]).get(key))
        response = None
        if not isinstance(end.error, LedgerError) and (body := ledger.responses.to(key)) is not None:
            response = for_xcom(body)
            push_responses(task.context, [response])
        delivery.conclude(end, counts, sums)
    describe_on_assets(task.context, facts(summary()))
    if counts.already_sent:
        log.info("The campaign had sent this text to these groups already; it was not sent again")
    return response


def _count(ledger: CampaignLedger, key: bytes, end: DeliveryEnd) -> tuple[RowCounts, Sums, DeliveryEnd]:
    """Return who holds the text now, the sums of its request, and the end: an error if the ledger cannot be read."""
    try:
        ledger.require_whole()
        return count_keys([key], ledger), add_up(ledger.sent_requests()), end
    except LedgerError as error:
        log.warning("The ledger cannot be read: %s", error)
        return RowCounts(unknown=1), Sums(), end._replace(error=graver(end.error, error))


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
