"""Operators that send: a table of recipients, or a text to groups."""

from airflow_provider_sms.operators.bulk import BulkSmsOperator
from airflow_provider_sms.operators.group import GroupSmsOperator

__all__ = ["BulkSmsOperator", "GroupSmsOperator"]
