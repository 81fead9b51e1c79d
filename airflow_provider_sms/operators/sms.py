"""The operators that text a table or groups, and the operator that purges the ledger.

This is the documented import path, also for the limits, sending hours and queries that they take as arguments; the
operators themselves are in modules of their own.
"""

from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.operators.bulk import BulkSmsOperator
from airflow_provider_sms.operators.group import GroupSmsOperator
from airflow_provider_sms.operators.purge import PurgeLedgerOperator
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.send_window.window import SOUTH_AFRICAN_DIRECT_MARKETING, SendWindow

__all__ = [
    "SOUTH_AFRICAN_DIRECT_MARKETING",
    "BulkSmsOperator",
    "GroupSmsOperator",
    "Limits",
    "PurgeLedgerOperator",
    "SendWindow",
    "SqlSource",
]
