"""The XComs of a sending task: their keys, and how their values are made."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.execution.errors import describe, log_unforeseen

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.claims import CampaignLedger

log = logging.getLogger(__name__)

SUMMARY = "return_value"
"""What the task returns: the summary of a table, also before a deferral and a failure; the response to a group."""
RESPONSES = "responses"
"""The service's responses in request order, or how many there are."""
MAX_RESPONSES = 100
MAX_CHARACTERS = 1024 * 1024
"""Responses that an XCom holds, and their length as JSON; the ledger has them all."""
PLAN = "plan"
"""The plan of a table, before anything is sent."""


def push(context: Context, key: str, value: Any) -> None:
    """Push an XCom, unless the task pushes none."""
    task: Any = context["task"]
    if task.do_xcom_push:
        context["ti"].xcom_push(key=key, value=value)


def push_responses(context: Context, ledger: CampaignLedger) -> None:
    """Push the responses to all requests of this task instance; log a failure, which must not fail a send."""
    try:
        count = ledger.count_responses()
        bodies = ledger.responses(MAX_RESPONSES) if count <= MAX_RESPONSES else []
        if len(bodies) == count and sum(map(len, bodies)) <= MAX_CHARACTERS:
            push(context, RESPONSES, list(map(json.loads, bodies)))
            return
        log.info("The %d responses are too many for an XCom: the ledger has them", count)
        push(context, RESPONSES, {"truncated": True, "requests": count})
    except Exception as error:  # noqa: BLE001  # its words may quote the responses
        log_unforeseen(error)
        log.warning("The responses could not be pushed as the XCom %r: %s", RESPONSES, describe(error))
