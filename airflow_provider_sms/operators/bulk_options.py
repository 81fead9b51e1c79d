"""The checks of the arguments that :class:`BulkSmsOperator` adds, and the options made from all its arguments.

It lies below the operator and reads its attributes as ``Any``: a rendered template may be of any type, whatever the
operator declares.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.options import BulkOptions, OnInvalid, OnLowBalance
from airflow_provider_sms.messages.plain_text import tidy_text
from airflow_provider_sms.operators.checks import Check, is_number, require_whole
from airflow_provider_sms.operators.message_options import MESSAGE_CHECKS
from airflow_provider_sms.operators.templated_values import VALUE_CHECKS, read_value
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.recipients.paths import require_parquet_name
from airflow_provider_sms.recipients.values import is_missing

MAX_CHUNK = 100
"""Messages in a request: the service's own limit."""
MAX_CONCURRENCY = 1000
"""Requests in flight at once, each with a thread of its own."""
_NUMBERS = (
    "chunk_size",
    "concurrency",
    "max_parts_per_message",
    "max_requests_per_second",
    "max_error_rate",
)


def read_bulk_options(task: Any) -> BulkOptions:
    """Check all arguments of a :class:`BulkSmsOperator`, and return them; its templates are rendered.

    :raises InputError: names the argument.
    """
    task.check_arguments()
    made: dict[str, Any] = {
        "limits": Limits(
            max_rows=read_value(task, "max_rows"),
            min_rows=read_value(task, "min_rows"),
            max_cost=read_value(task, "max_cost"),
            max_invalid=read_value(task, "max_invalid"),
            max_parts_per_message=task.max_parts_per_message,
            max_repeats=read_value(task, "max_repeats"),
        ),
        "approved_plan": None if task.approved_plan is None else PlanId.read(task.approved_plan),
    }
    taken = {each.name: getattr(task, each.name) for each in fields(BulkOptions) if each.name not in made}
    return BulkOptions(**taken, **made)


def _check_on_invalid(task: Any) -> None:
    if task.on_invalid not in get_args(OnInvalid):
        raise InputError(f"on_invalid must be 'fail' or 'skip', not {task.on_invalid!r}")


def _check_numbers(task: Any) -> None:
    require_whole(task, "chunk_size", 1, MAX_CHUNK)
    require_whole(task, "concurrency", 1, MAX_CONCURRENCY)
    if task.max_parts_per_message is not None:
        require_whole(task, "max_parts_per_message", 1)
    rate = task.max_requests_per_second
    if rate is not None and not (is_number(rate) and rate > 0):
        raise InputError("max_requests_per_second must be a number above 0, or None for no limit")
    errors = task.max_error_rate
    if errors is not None and not (is_number(errors) and 0 <= errors <= 1):
        raise InputError("max_error_rate must be a share, 0 to 1, or None for no limit")


def _check_report(task: Any) -> None:
    if task.report is not None and not (isinstance(task.report, str) and task.report.strip()):
        raise InputError("report must be the path or URI of a file to write, or None for no report")
    if task.report is not None:
        if is_missing(tidy_text(task.report)):
            raise InputError(f"report is {task.report!r}: was there no value to render it from?")
        require_parquet_name(task.report, "report")


def _check_max_invalid(task: Any) -> None:
    if task.max_invalid is not None and task.on_invalid != "skip":
        raise InputError("max_invalid needs on_invalid='skip': without it one row that cannot be texted is too many")


def _check_on_low_balance(task: Any) -> None:
    if task.on_low_balance not in get_args(OnLowBalance):
        raise InputError(f"on_low_balance must be 'send', 'fail' or 'wait', not {task.on_low_balance!r}")


def _check_approved_plan(task: Any) -> None:
    if task.approved_plan is not None:
        PlanId.read(task.approved_plan)


def _check_named(task: Any) -> None:
    if task.approved_plan is not None and not task.has_name:
        raise InputError("approved_plan needs campaign: the default campaign is that of this task alone")


def _check_send_window(task: Any) -> None:
    window = task.send_window
    if window is not None and not hasattr(window, "closed_until"):
        raise InputError("send_window must be a SendWindow, or None for any hours")


BULK_CHECKS = (
    Check(_check_on_invalid, ("on_invalid",)),
    Check(_check_numbers, _NUMBERS),
    *VALUE_CHECKS,
    Check(_check_report, ("report",)),
    Check(_check_max_invalid, ("on_invalid",)),
    Check(_check_on_low_balance, ("on_low_balance",)),
    Check(_check_named),
    Check(_check_approved_plan, ("approved_plan",)),
    Check(_check_send_window, ("send_window",)),
    *MESSAGE_CHECKS,
)
