"""The checks of the arguments that all sending operators share.

It lies below the operators and reads their attributes as ``Any``: a rendered template may be of any type, whatever the
operator declares.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.options import OnUnknown
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.operators.checks import LEDGER_CONNECTION, SMS_CONNECTION, Check, require_flag
from airflow_provider_sms.operators.durations import seconds_of
from airflow_provider_sms.operators.question_options import QUESTION_CHECKS

MAX_SETTLE = timedelta(days=1)
"""The longest wait, during which the task keeps its slot."""


def read_settle_seconds(task: Any) -> float | None:
    """Return ``settle_seconds`` in seconds; None means until the deadline of the request's claim.

    :raises InputError: it is not a duration of at most a day, or ``on_unknown`` does not use it.
    """
    if task.settle_seconds is None:
        return None
    seconds = seconds_of(task.settle_seconds)
    if seconds is None or not 0 <= seconds <= MAX_SETTLE.total_seconds():
        raise InputError(
            "settle_seconds must be a number of seconds from 0 to 86400, a timedelta, or None, not "
            f"{task.settle_seconds!r}"
        )
    if task.on_unknown != "reconcile":
        raise InputError("settle_seconds needs on_unknown='reconcile': nothing else waits for a charge")
    return seconds


def _check_on_unknown(task: Any) -> None:
    choices = get_args(OnUnknown)
    if task.on_unknown not in choices:
        raise InputError(f"on_unknown must be one of {', '.join(choices)}, not {task.on_unknown!r}")


def _check_settle_seconds(task: Any) -> None:
    read_settle_seconds(task)


def _check_campaign(task: Any) -> None:
    if task.has_name:
        read_name(task.campaign)


def _check_send_options(task: Any) -> None:
    if task.send_options is None:
        return
    if not isinstance(task.send_options, dict):
        raise InputError("send_options must be a dict of the service's Send Options, or None")
    import orjson

    try:
        orjson.dumps(task.send_options)
    except orjson.JSONEncodeError as error:
        # The error's own text names a type, never a value.
        raise InputError(f"send_options cannot be written as JSON: {error}") from None


BASE_CHECKS = (
    Check(_check_on_unknown, ("on_unknown",)),
    Check(_check_settle_seconds, ("settle_seconds", "on_unknown")),
    Check(_check_campaign, ("campaign",)),
    Check(lambda task: require_flag(task, "raw_responses"), ("raw_responses",)),
    Check(_check_send_options, ("send_options",)),
    SMS_CONNECTION,
    LEDGER_CONNECTION,
    *QUESTION_CHECKS,
)
