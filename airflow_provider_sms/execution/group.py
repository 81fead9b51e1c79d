"""One attempt to text groups: the ledger, the one request, its response."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.exceptions import LedgerError, ServiceError
from airflow_provider_sms.execution.enter import enter
from airflow_provider_sms.execution.errors import graver
from airflow_provider_sms.execution.send import End, conclude, send_messages
from airflow_provider_sms.execution.xcom import for_xcom, push_responses
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.ledger.holders import GROUP_DESTINATION
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.message import Outgoing
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.reporting.row_counts import RowCounts, count_keys
from airflow_provider_sms.reporting.summary import Sums, add_up, facts, summarise
from airflow_provider_sms.sending.stop_conditions import StopConditions

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.execution.options import GroupOptions
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


def text_groups(task: Any, context: Context) -> dict[str, Any] | None:
    """Make one attempt of a :class:`GroupSmsOperator`.

    :param task: the operator.
    :returns: the response; None where the ledger holds none.
    """
    with enter(task, context, resumed=False) as run:
        options: GroupOptions = run.options
        ledger = run.ledger
        key = group_key(options.message, options.groups)
        checked = count_keys([key], ledger)
        to_send = checked.unknown + checked.not_sent
        run.progress.summary = summarise(run.campaign, checked, Sums())
        run.progress.begin(checked, to_send)
        end = End()
        if to_send:
            refuse_changed_texts(lambda: iter([(key, np.array([GROUP_DESTINATION]))]), ledger, run.stop)
            run.progress.summary = summarise(run.campaign, checked.in_doubt(), Sums())  # until it is counted
            end = _send(run, key, checked.unsettled)
        counts, sums, end = _count(run, key, end)
        run.progress.summary = summary = summarise(run.campaign, counts, sums, run.reconciliation.reconciled)
        push_responses(context, ledger)
        conclude(run, end, counts, sums)
        body = ledger.response_to(key)
    describe_on_assets(context, facts(summary))
    if counts.already_sent:
        log.info("The campaign had sent this text to these groups already; it was not sent again")
    return None if body is None else for_xcom(body)


def _send(run: Run, key: bytes, held_by: Collection[int]) -> End:
    options: GroupOptions = run.options
    outgoing = Outgoing([key], [None], [options.message], [None])

    def post(client: SmsClient, _: Outgoing) -> SendResponse:
        return client.send_group(options.message, options.groups, send_options=options.send_options)

    try:
        run.reconciliation.observe()  # it may be the account's first send: without a reading, no charge could be seen
    except ServiceError as error:
        log.info("The balance cannot be read before the send: %s", error)
    return send_messages(
        run,
        [] if held_by else [outgoing],
        lambda: [] if run.ledger.holders([key]) else [outgoing],
        post,
        held_by=held_by,
        stop_conditions=StopConditions(),
    )


def _count(run: Run, key: bytes, end: End) -> tuple[RowCounts, Sums, End]:
    """Return who holds the text now, the sums of its request, and the end: an error if the ledger cannot be read."""
    try:
        run.ledger.require_whole()
        return count_keys([key], run.ledger), add_up(run.ledger.sent_requests()), end
    except LedgerError as error:
        log.warning("The ledger cannot be read: %s", error)
        return RowCounts(unknown=1), Sums(), end._replace(error=graver(end.error, error))
