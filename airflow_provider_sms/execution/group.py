"""One attempt to text groups: the ledger, the one request, its response."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.execution.enter import balance_if_readable, enter
from airflow_provider_sms.execution.send import Count, End, conclude, count_messages, send_messages
from airflow_provider_sms.execution.xcom import push_responses
from airflow_provider_sms.hooks.metrics import describe_on_assets
from airflow_provider_sms.ledger.holders import GROUP_DESTINATION
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.messages.message import Outgoing
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.reporting.row_counts import count_keys
from airflow_provider_sms.reporting.summary import Sums, summarise
from airflow_provider_sms.sending.stop_conditions import StopConditions

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


def text_groups(task: Any, context: Context) -> dict[str, Any] | None:
    """Make one attempt of a :class:`GroupSmsOperator`, and return the response; None where the ledger holds none."""
    with enter(task, context, resumed=False) as run:
        options = run.options
        ledger, key = run.ledger, group_key(options.message, options.groups)
        count = Count(count_keys([key], ledger), Sums())
        to_send = count.counts.unknown + count.counts.not_sent
        run.progress.summary = summarise(run.campaign, count.counts, count.sums)
        run.progress.begin(count.counts, to_send)
        end = End()
        if to_send:
            refuse_changed_texts(lambda: iter([(key, np.array([GROUP_DESTINATION]))]), ledger, run.stop)
            run.progress.summary = summarise(run.campaign, count.counts.in_doubt(), Sums())  # until it is counted
            end = _send(run, key, count.counts.unsettled)
        count = count_messages(run, lambda: count_keys([key], ledger), count)
        summary = summarise(run.campaign, count.counts, count.sums, run.reconciliation.reconciled)
        run.progress.summary = summary
        push_responses(context, ledger)
        conclude(run, end, count)
        body = ledger.response_to(key)
    describe_on_assets(context, summary)
    if count.counts.already_sent:
        log.info("The campaign had sent this text to these groups already; it was not sent again")
    return None if body is None else json.loads(body)


def _send(run: Run, key: bytes, held_by: Collection[int]) -> End:
    options = run.options
    outgoing = Outgoing([key], [None], [options.message], [None])

    def post(client: SmsClient, _: Outgoing) -> SendResponse:
        return client.send_group(options.message, options.groups, send_options=options.send_options)

    # It may be the account's first send: without a reading, no charge could be seen.
    balance_if_readable(run.reconciliation.observe)
    return send_messages(
        run,
        [] if held_by else [outgoing],
        lambda: [outgoing] if run.ledger.look(key).are_free.all() else [],
        post,
        held_by=held_by,
        stop_conditions=StopConditions(),
    )
