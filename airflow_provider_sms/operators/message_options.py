"""The checks of the arguments that say whom to text, and what, which ``BulkSmsOperator`` and the sensor share.

It lies below both, and reads their attributes.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.redaction import Rows, is_to_be_rendered, require_location
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.messages.arguments import check_columns, check_message, check_one_text
from airflow_provider_sms.operators.checks import Check
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.forms import explain_other, is_rows
from airflow_provider_sms.recipients.regions import read_region
from airflow_provider_sms.recipients.values import is_missing


def _check_one_text(task: Any) -> None:
    check_one_text(task.message, task.content_column)


def _check_message(task: Any) -> None:
    check_message(task.message)


def _check_columns(task: Any) -> None:
    check_columns(task.destination_column, task.content_column, getattr(task, "key_columns", None))


def _check_region(task: Any) -> None:
    if task.default_region is not None:
        read_region(task.default_region)


def _check_prices(task: Any) -> None:
    Prices(task.cost_per_part)


def _check_sources(task: Any) -> None:
    """Refuse values that cannot be recipients, assets that name no place, queries without a statement, and None.

    A source that the task computes is not checked: it is not there yet, or is that of an earlier attempt.
    """
    for argument in ("suppress",) if getattr(task, "computes_source", False) else ("source", "suppress"):
        given = getattr(task, argument, None)
        if given is None and argument == "source":
            raise InputError(f"source: {explain_other(given)}")
        for each in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(each, Asset):
                require_location(each, argument)
            elif isinstance(each, SqlSource) and not is_to_be_rendered(each.sql):
                each.require_statement(argument)
            elif isinstance(each, str) and is_missing(each.strip()):
                raise InputError(f"{argument} is {each!r}: was there no value to render it from?")
            elif isinstance(each, str) and not each.strip():
                raise InputError(f"{argument}: {explain_other(each)}")
            # Text in it is rows that a template wrote out; the task's own error says what to do about that.
            elif isinstance(each, Rows) and not (isinstance(each.data, str) or is_rows(each.data)):
                raise InputError(f"{argument}: {explain_other(each.data)}")


MESSAGE_CHECKS = (
    Check(_check_one_text),
    Check(_check_message, ("message",)),
    Check(_check_columns, ("destination_column", "content_column", "key_columns")),
    Check(_check_region, ("default_region",)),
    Check(_check_prices, ("cost_per_part",)),
    Check(_check_sources),
)
