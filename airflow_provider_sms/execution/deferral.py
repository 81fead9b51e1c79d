"""A deferral: how a task waits without a worker slot, what Airflow stores meanwhile, and what it brings back.

A deferral stores the trigger's class and arguments and the method to call next, unencrypted in Airflow's database: a
moment, or a connection's id, a balance and an interval; never a token or a number. The rest of what the leg after the
wait has to know is in the ledger, and in the XComs that :mod:`~airflow_provider_sms.execution.xcom` lists. A wait for a
person stores the question as well, with some texts and masked numbers:
:mod:`~airflow_provider_sms.execution.human_input`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

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


def read_event(event: object) -> Literal["decision", "balance", "moment"]:
    """Return the kind of event that ended a deferral.

    :param event: the event, as Airflow brings it back.
    :returns: ``decision`` for a person's decision, which is not checked here: see
        :mod:`~airflow_provider_sms.execution.human_input`; ``balance`` if there is credit now; ``moment`` if the moment
        has come.
    :raises AirflowFailException: the balance cannot be read, and a retry could not help.
    :raises AirflowException: the balance cannot be read.
    """
    if not isinstance(event, Mapping):
        # A time, or a time as text, depending on the version of Airflow.
        return "moment"
    balance: Mapping[str, Any] = event
    if "chosen_options" in balance or "status" not in balance:
        return "decision"
    if balance["status"] != "success":
        raise (AirflowFailException if balance.get("permanent") else AirflowException)(balance["message"])
    return "balance"


def gives_up_slot(signal: BaseException) -> bool:
    """Return whether an exception tells Airflow that the task waits, and is neither an error nor the task's end."""
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3 a trigger waits for a person, too
        return isinstance(signal, TaskDeferred)
    return isinstance(signal, (TaskAwaitingInput, TaskDeferred))
