"""The conditions for sending a plan, the hours and the credit, and the wait for each without a worker slot.

A deferral stores the trigger's arguments unencrypted in Airflow's database: a moment, or a connection's id, a balance
and an interval; never a token or a number. Then the attempt begins again from the top.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred

from airflow_provider_sms.exceptions import CreditError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.sending.stop_conditions import StopReason, closed_for_all
from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 30.0
"""Seconds between two readings of the balance."""
RESUME_METHOD = "execute_complete"
"""The operator's method that Airflow calls after a deferral; its name is in Airflow's database while a task waits."""


def wait_before(run: Run, plan: Plan) -> Balance | None:
    """Return the balance if the plan may be sent now, as far as it was read; otherwise wait: for hours, then credit."""
    if not plan.to_send:
        return plan.balance
    if (opening := closed_for_all(run.options.send_window, datetime.now(timezone.utc))) is not None:
        wait(run, StopReason(until=opening))
    if run.options.on_low_balance == "send":
        return plan.balance
    balance, cost = plan.balance or run.reconciliation.observe(), plan.estimate.cost
    if balance is None or balance.covers(cost):
        return balance
    if run.options.on_low_balance == "fail":
        raise CreditError(
            f"The balance is {balance.amount:f}, and the {plan.to_send} "
            f"{by_count(plan.to_send, 'message costs', 'messages cost')} about {cost:f} "
            f"{by_count(cost, 'credit')}, so nothing was sent. Top up, or set on_low_balance='wait' to wait "
            "for credit without a slot"
        )
    return wait(run, StopReason(credit=cost))


def wait(run: Run, reason: StopReason) -> NoReturn:
    """Release the worker slot until a send may go on: at a moment, or once there is credit.

    The balance is read at once, then every 30 seconds.
    """
    if reason.until is not None:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        log.info("Outside of the sending hours: waiting until %s", reason.until.isoformat())
        run.progress.note(AttemptState.WAITING_FOR_HOURS, {"until": reason.until.isoformat()})
        raise TaskDeferred(trigger=DateTimeTrigger(reason.until), method_name=RESUME_METHOD)
    needed = reason.credit or Decimal(0)
    log.info("Waiting for credit: the balance has to be at least %s", needed)
    run.progress.note(AttemptState.WAITING_FOR_CREDIT, {"balance_needed": float(needed)})
    trigger = BalanceTrigger(run.settings.conn_id, str(needed), INTERVAL_SECONDS)
    raise TaskDeferred(trigger=trigger, method_name=RESUME_METHOD)


def require_balance(event: object) -> None:
    """Raise the error that ended a wait for credit, if the event that Airflow brings back is one."""
    # A time, or a time as text, depending on the version of Airflow, ends the wait for the hours.
    if isinstance(event, Mapping) and event["status"] != "success":
        raise (AirflowFailException if event.get("permanent") else AirflowException)(event["message"])
