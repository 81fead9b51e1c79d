"""The XComs of a sending task: their keys, and how their values are made."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.providers.common.compat.sdk import conf

from airflow_provider_sms.masking import STARS
from airflow_provider_sms.service.inputs import is_loopback
from airflow_provider_sms.service.redaction import FAULT_KEYS, redacted_response, storable

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.claims import CampaignLedger

log = logging.getLogger(__name__)

SUMMARY = "return_value"
"""What the task returns: the summary of a table's send, or the response to a send to groups.

The summary is pushed before a deferral and when the task fails, too.
"""
RESPONSES = "responses"
"""The service's responses in request order, or how many there are."""
PLAN = "plan"
"""The plan, as :meth:`~airflow_provider_sms.planning.plan.Plan.as_json` returns it, before anything is sent."""
APPROVAL = "approval"
"""Which plan a person approved or refused, who it was, and when."""
MARKER = "sms_ledger"
"""The ledger that was used and its high-water mark, for the leg after a deferral; also in Airflow's task state store.

See :class:`~airflow_provider_sms.execution.ledger_session.Marker`.
"""
REPORT_LINK = "_link_sms_report"
"""The address of the row report, for the button beside the task."""
SANDBOX_LINK = "_link_sms_sandbox"
"""The address of the sandbox's page, for the button beside the task."""

_DEEPEST = 50
"""Levels of a response that an XCom holds, since Airflow reads and writes XComs recursively: a deeper value becomes
stars."""
_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1
"""The integers that Airflow's messages between a task and its supervisor hold; any other one becomes text."""


def pushes(context: Context) -> bool:
    """Return whether the task pushes XComs."""
    task: Any = context["task"]
    return bool(task.do_xcom_push)


def push(context: Context, key: str, value: Any) -> None:
    """Push an XCom, unless the task pushes none."""
    if pushes(context):
        context["ti"].xcom_push(key=key, value=value)


def push_link(context: Context, key: str, link: str) -> None:
    """Push the address of a button beside the task, and note that on the operator, which Airflow asks at the end."""
    push(context, key, link)
    task: Any = context["task"]
    if pushes(context):
        task.links_pushed[key] = link


def push_responses(context: Context, responses: list[Any] | dict[str, Any]) -> None:
    """Push the service's responses, or log that they cannot be pushed, which must not fail a send that is done."""
    try:
        push(context, RESPONSES, responses)
    except Exception as error:  # noqa: BLE001  # its words may quote the responses
        log.warning(
            "The responses could not be pushed as the XCom %r, and the ledger has them: %s",
            RESPONSES,
            type(error).__name__,
        )


def pull_own(context: Context, key: str) -> Any:
    """Return an XCom that an earlier leg of this attempt pushed; None where there is none.

    Airflow clears the XComs of a task before each attempt, and not between two legs of one.
    """
    ti: Any = context["ti"]
    return ti.xcom_pull(task_ids=ti.task_id, key=key, map_indexes=ti.map_index)


def responses_of(ledger: CampaignLedger, limit: int, *, raw: bool) -> list[Any] | dict[str, Any]:
    """Return the responses to this task's requests, of all its attempts; above the limit only their number.

    :param raw: whether to return all of each response that the ledger keeps.
    """
    count = ledger.responses.count()
    if count > limit:
        return {"truncated": True, "requests": count}
    return [for_xcom(body, raw=raw) for body in ledger.responses.first(limit)]


def for_xcom(body: str, *, raw: bool) -> dict[str, Any]:
    """Return a response as an XCom can hold it, whatever the service wrote.

    :param body: as the ledger keeps it.
    :param raw: whether to return all of it. Otherwise it is redacted here, too: the task may have kept it raw before.
    :returns: ``{"truncated": True}`` for a response that has too many levels to be read.
    """
    try:
        kept = json.loads(body)
    except RecursionError:
        return {"truncated": True}
    shown = {key: value for key, value in kept.items() if key != FAULT_KEYS} if raw else redacted_response(kept)
    return {storable(key): _harmless(value) for key, value in shown.items()}


def _harmless(value: Any, depth: int = 0) -> Any:
    """Return a value of a response as Airflow's messages and databases take it."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int) and not _LEAST_INTEGER <= value <= _LARGEST_INTEGER:
        return str(value)
    if not isinstance(value, (list, dict)):
        return value
    if depth >= _DEEPEST:
        return STARS
    if isinstance(value, list):
        return [_harmless(item, depth + 1) for item in value]
    return {storable(key): _harmless(item, depth + 1) for key, item in value.items()}


def report_url(report: str) -> str | None:
    """Return the address at which a report can be opened; None without an address in ``[sms] report_url``.

    :param report: the path or URI that the report was written to.
    """
    template: str = conf.get("sms", "report_url", fallback="").strip()
    if not template.startswith(("http://", "https://")):
        return None
    _, is_uri, place = report.partition("://")
    if is_uri:
        # The text before the @ names an Airflow connection.
        host, slash, path = place.partition("/")
        place = host.rpartition("@")[2] + slash + path
    return template.replace("{path}", quote(place if is_uri else report))


def sandbox_url(base_url: str) -> str | None:
    """Return the address of the sandbox's page; None if the service is on another machine, and so is no sandbox.

    :param base_url: of the service.
    """
    parts = urlsplit(base_url)
    on_this_machine = is_loopback(parts.hostname or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/" if on_this_machine else None
