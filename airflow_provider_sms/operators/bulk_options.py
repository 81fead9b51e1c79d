"""The check of a :class:`BulkSmsOperator`'s arguments, once they are rendered.

Below the operator, whose attributes it reads: a rendered template may be of any type, whatever the operator declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.options import BulkOptions
from airflow_provider_sms.operators.question_options import read_question_options
from airflow_provider_sms.operators.templated_values import read_value
from airflow_provider_sms.planning.limits import Limits, Threshold

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.frequency_cap import FrequencyCap

MAX_CHUNK = 100
"""Messages in a request: the service's own limit."""

_WHOLE = (
    ("chunk_size", 1, MAX_CHUNK),
    ("concurrency", 1, 1000),
    ("max_xcom_responses", 0, None),
)


def read_bulk_options(task: Any) -> BulkOptions:
    """Check the arguments that are a :class:`BulkSmsOperator`'s own, and return them with those of its base.

    :raises InputError: names the argument.
    """
    if task.on_invalid not in ("fail", "skip"):
        raise InputError(f"on_invalid must be 'fail' or 'skip', not {task.on_invalid!r}")
    for name, least, most in _WHOLE:
        _require_whole(name, getattr(task, name), least, most)
    if task.max_parts_per_message is not None:
        _require_whole("max_parts_per_message", task.max_parts_per_message, 1, None)
    read_value(task, "dry_run")
    if not isinstance(task.destination_column, str):
        raise InputError("destination_column must be the name of a column")
    rate = task.max_requests_per_second
    if rate is not None and not (_is_number(rate) and rate > 0):
        raise InputError("max_requests_per_second must be a number above 0, or None for no limit")
    if task.report is not None and not (isinstance(task.report, str) and task.report.strip()):
        raise InputError("report must be the path or URI of a file to write, or None for no report")
    errors = task.max_error_rate
    if errors is not None and not (_is_number(errors) and 0 <= errors <= 1):
        raise InputError("max_error_rate must be a share, 0 to 1, or None for no limit")
    made: dict[str, Any] = {
        "approve": read_value(task, "approve"),
        "approval_threshold": threshold_of(task.approve_above),
        "limits": Limits(
            max_rows=read_value(task, "max_rows"),
            min_rows=read_value(task, "min_rows"),
            max_cost=read_value(task, "max_cost"),
            max_invalid=_max_invalid(task),
            max_parts_per_message=task.max_parts_per_message,
            max_repeats=read_value(task, "max_repeats"),
        ),
        "frequency_cap": _frequency_cap(task.campaign_group, task.min_interval),
    }
    _check_waits(task, approve=made["approve"])
    made["question"] = read_question_options(task)
    taken = {each.name: getattr(task, each.name) for each in fields(BulkOptions) if each.name not in made}
    return BulkOptions(**taken, **made)


def threshold_of(value: int | Mapping[str, float] | None) -> Threshold | None:
    """Return the size above which a plan needs approval.

    :param value: messages; or these as ``rows``, and credits as ``cost``; None means that no size needs approval.
    :raises InputError: names the argument.
    """
    if value is None:
        return None
    given = value if isinstance(value, Mapping) else {"rows": value}
    rows, cost = given.get("rows"), given.get("cost")
    if not given or set(given) - {"rows", "cost"} or not all(_is_number(each) and each >= 0 for each in given.values()):
        raise InputError("approve_above must be a number of messages, or a dict with 'rows', 'cost' or both")
    return Threshold(None if rows is None else int(rows), None if cost is None else Decimal(str(cost)))


def _max_invalid(task: Any) -> int | Decimal | None:
    limit: int | Decimal | None = read_value(task, "max_invalid")
    if limit is not None and task.on_invalid != "skip":
        raise InputError("max_invalid needs on_invalid='skip': without it one row that cannot be texted is too many")
    return limit


def _check_waits(task: Any, *, approve: bool) -> None:
    for name in ("check_balance", "wait_for_credit", "fail_on_rejected"):
        if not isinstance(getattr(task, name), bool):
            raise InputError(f"{name} must be True or False")
    if not (_is_number(task.credit_interval) and task.credit_interval > 0):
        raise InputError("credit_interval must be a number of seconds above 0")
    window = task.send_window
    if window is not None and not hasattr(window, "closed_until"):
        raise InputError("send_window must be a SendWindow, or None for any hours")
    if approve or task.approve_above is not None:
        from airflow_provider_sms.execution.human_input import require_asking

        argument = "approve=True" if approve else "approve_above"
        require_asking(argument, "leave it out, and look at the plan of a task with dry_run=True")
        if task.on_unknown == "ask":
            raise InputError(
                f"{argument} and on_unknown='ask' cannot be in one task: Airflow shows the first question of a task "
                "again, whatever it asks later. Use on_unknown='fail', and airflow-sms ledger resolve"
            )


def _frequency_cap(group: Any, interval: Any) -> FrequencyCap | None:
    """Return how often the group may text a person; None where nothing limits that."""
    if group is not None and not (isinstance(group, str) and group.strip()):
        raise InputError("campaign_group must be a name that is not empty, or None")
    if interval is not None and not (isinstance(interval, timedelta) and interval > timedelta(0)):
        raise InputError("min_interval must be a timedelta above 0, or None")
    if (group is None) != (interval is None):
        raise InputError("campaign_group and min_interval belong together: set both or neither")
    if group is None or interval is None:
        return None
    from airflow_provider_sms.ledger.frequency_cap import FrequencyCap

    return FrequencyCap(group, interval.total_seconds())


def _require_whole(name: str, value: Any, least: int, most: int | None) -> None:
    if type(value) is not int or value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{name} must be a whole number, {limits}, not {value!r}")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)
