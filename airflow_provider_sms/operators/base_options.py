"""The checks of the arguments that all sending operators share.

It lies below the operators and reads their attributes as ``Any``: a rendered template may be of any type, whatever the
operator declares.
"""

from __future__ import annotations

from typing import Any, get_args

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.options import OnUnknown
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.operators.checks import LEDGER_CONNECTION, SMS_CONNECTION, Check


def _check_on_unknown(task: Any) -> None:
    choices = get_args(OnUnknown)
    if task.on_unknown not in choices:
        raise InputError(f"on_unknown must be one of {', '.join(choices)}, not {task.on_unknown!r}")


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
    Check(_check_campaign, ("campaign",)),
    Check(_check_send_options, ("send_options",)),
    SMS_CONNECTION,
    LEDGER_CONNECTION,
)
