"""Waiting without a worker slot, for a moment or for credit, and what a task that goes on was waiting for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred

from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from airflow.providers.common.compat.sdk import BaseOperator

    from airflow_provider_sms.operators.base import SmsOperatorBase


def wait_until(task: BaseOperator, moment: datetime, method_name: str = "execute_complete") -> NoReturn:
    """Give up the slot until a moment; Airflow goes on with the task then, within seconds.

    :param moment: with a time zone. One that has passed ends the wait at once.
    :param method_name: called with the context and the event.
    """
    try:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger
    except ImportError:  # Airflow 2 has it itself, and need not have that provider
        from airflow.triggers.temporal import DateTimeTrigger  # type: ignore[import-not-found,no-redef]

    task.defer(trigger=DateTimeTrigger(moment), method_name=method_name)


def wait_for_balance(
    task: SmsOperatorBase, min_balance: Decimal, poke_interval: float, method_name: str = "execute_complete"
) -> NoReturn:
    """Give up the slot until there is credit, however long it takes; Airflow goes on with the task then.

    Transient errors (no connection, no usable response, 429) are ridden out, any number of them. The first look is
    taken at once.

    :param task: whose connection is looked at.
    :param min_balance: the least that suffices; a post-paid account always does.
    :param poke_interval: seconds between two looks.
    :param method_name: called with the context and the event.
    """
    trigger = BalanceTrigger(
        sms_conn_id=task.sms_conn_id, min_balance=str(min_balance), poke_interval=poke_interval, max_failures=None
    )
    task.defer(trigger=trigger, method_name=method_name)


def read_parking(event: object) -> Literal["answer", "balance", "moment"]:
    """Say what a task that goes on was waiting for.

    :param event: what Airflow brings back.
    :returns: ``answer`` for a person's, which is not checked here: see
        :func:`~airflow_provider_sms.execution.human_input.read_answer`; ``balance`` where there is credit now;
        ``moment`` where it has come.
    :raises AirflowFailException: the balance cannot be read, and a retry could not help.
    :raises AirflowException: the balance cannot be read.
    """
    if not isinstance(event, Mapping):
        # A time, or text of one: that depends on how Airflow's version passes it on.
        return "moment"
    balance: Mapping[str, Any] = event
    if "chosen_options" in balance or "status" not in balance:
        return "answer"
    if balance["status"] != "success":
        raise (AirflowFailException if balance.get("permanent") else AirflowException)(balance["message"])
    return "balance"


def gives_up_slot(signal: BaseException) -> bool:
    """Whether what was raised tells Airflow that the task waits, and is neither an error nor its end."""
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3 a trigger waits for a person, too
        return isinstance(signal, TaskDeferred)
    return isinstance(signal, (TaskAwaitingInput, TaskDeferred))
