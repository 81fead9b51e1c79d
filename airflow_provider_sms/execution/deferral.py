"""A deferral: how a task waits without a worker slot, what Airflow stores meanwhile, and what it brings back.

A deferral stores the trigger's class and arguments and the method to call next, unencrypted in Airflow's database: a
moment, or a connection's id, a balance and an interval; never a token or a number. The rest of what the leg after the
wait has to know is in the ledger, and in the XComs that :mod:`~airflow_provider_sms.execution.xcom` lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred

from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

INTERVAL_SECONDS = 30.0
"""Seconds between two readings of the balance."""
RESUME_METHOD = "execute_complete"
"""The operator's method that Airflow calls after a deferral; its name is in Airflow's database while a task waits."""


def wait_until(moment: datetime) -> NoReturn:
    """Release the worker slot until a moment; Airflow resumes the task within seconds of it.

    :param moment: with a time zone. A moment that has passed ends the wait at once.
    """
    from airflow.providers.standard.triggers.temporal import DateTimeTrigger

    raise TaskDeferred(trigger=DateTimeTrigger(moment), method_name=RESUME_METHOD)


def wait_for_balance(sms_conn_id: str, min_balance: Decimal) -> NoReturn:
    """Release the worker slot until there is credit, however long that takes.

    Any number of transient errors (no connection, no usable response, 429) is tolerated. The balance is read at once,
    then every 30 seconds.

    :param sms_conn_id: the connection whose balance is read.
    :param min_balance: the lowest balance that suffices; a post-paid account always does.
    """
    trigger = BalanceTrigger(
        sms_conn_id=sms_conn_id, min_balance=str(min_balance), poke_interval=INTERVAL_SECONDS, max_failures=None
    )
    raise TaskDeferred(trigger=trigger, method_name=RESUME_METHOD)


def require_balance(event: object) -> None:
    """Raise the error that ended a wait for credit, if one did.

    :param event: the event that ended a deferral, as Airflow brings it back.
    :raises AirflowFailException: the balance cannot be read, and a retry could not help.
    :raises AirflowException: the balance cannot be read.
    """
    # A time, or a time as text, depending on the version of Airflow, ends the wait for the hours.
    if isinstance(event, Mapping) and event["status"] != "success":
        raise (AirflowFailException if event.get("permanent") else AirflowException)(event["message"])
