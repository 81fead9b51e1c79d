"""The conditions for sending a plan, the hours and the credit, and the wait for each without a worker slot.

:mod:`airflow_provider_sms.sending.stop_conditions` decides whether the hours and the credit allow a send, here and
before each claim.

A deferral stores the trigger's class and arguments and the method to call next, unencrypted in Airflow's database: a
moment, or a connection's id, a balance and an interval; never a token or a number. The rest of what the leg after the
wait has to know is in the ledger, and in the XComs that :mod:`~airflow_provider_sms.execution.xcom` lists.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred

from airflow_provider_sms.exceptions import AuthenticationError, CreditError, NotSentError, ServiceError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.sending.stop_conditions import (
    closed_for_all,
    covers,
    is_out_of_credit,
    prepaid,
)
from airflow_provider_sms.triggers.balance import BalanceTrigger

if TYPE_CHECKING:
    from airflow_provider_sms.execution.options import BulkOptions, SendingTask
    from airflow_provider_sms.execution.progress import Progress
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.sending.stop_conditions import StopReason
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 30.0
"""Seconds between two readings of the balance."""
RESUME_METHOD = "execute_complete"
"""The operator's method that Airflow calls after a deferral; its name is in Airflow's database while a task waits."""


class AccountStatus(NamedTuple):
    """The account as the service showed it before a send.

    :param balance: None where it could not be read.
    :param error: why no plan with messages may be sent without the balance; None where one may.
    """

    balance: Balance | None
    error: ServiceError | None = None


@dataclass(frozen=True)
class Preflight:
    """Checks the conditions of a send, and gives up the slot until they hold.

    :param reconciliation: reads and records the balance.
    """

    task: SendingTask
    options: BulkOptions
    campaign: str
    reconciliation: Reconciliation
    progress: Progress

    def read_account(self) -> AccountStatus:
        """Read the balance. No error is raised yet: a plan without messages needs no balance."""
        try:
            return AccountStatus(self._read_balance())
        except ServiceError as error:
            log.info("The plan is without the balance, which cannot be read: %s", error)
            if not self._requires_balance(error):
                return AccountStatus(None)
            if not _refuses_account(error):  # whose words say enough
                error.args = (f"Campaign {self.campaign}: nothing was sent, since the balance cannot be read: {error}",)
            return AccountStatus(None, error)

    def _requires_balance(self, error: ServiceError) -> bool:
        """Return whether nothing may be sent, since the balance could not be read.

        Where no connection was made, none can be expected for a request either. Airflow may run the next attempt on
        another worker, which may have a way to the service that this one has lost.
        """
        depends = self.options.on_low_balance != "send"
        no_connection = isinstance(error, NotSentError) and error.status is None
        out_of_reach = no_connection and self.task.is_retried and self.task.hook.get_settings().balance_url is None
        return depends or out_of_reach or _refuses_account(error)

    def require(self, plan: Plan, account: AccountStatus) -> None:
        """Return if the plan may be sent now; otherwise wait: for the hours, then for credit.

        :raises ServiceError: the balance could not be read, and nothing may be sent without it.
        :raises CreditError: there is not enough credit, and the task does not wait for it.
        """
        if not plan.to_send:
            if account.error is not None and plan.unknown and self.options.on_unknown == "reconcile":
                raise account.error
            return
        # Another error may pass while the task waits for the hours: the balance is read anew.
        if account.error is not None and _refuses_account(account.error):
            raise account.error
        opening = closed_for_all(self.options.send_window, datetime.now(timezone.utc))
        if opening is not None:
            self._wait_until(opening)
        if account.error is not None:
            raise account.error
        if self.options.on_low_balance != "send":
            self._require_credit(plan)

    def wait(self, reason: StopReason) -> NoReturn:
        """Release the worker slot until a stopped send may go on.

        :raises CreditError: the service says that a post-paid account is out of credit.
        :raises ServiceError: the service refuses to tell the balance, so the wait would fail, too.
        """
        if reason.until is not None:
            self._wait_until(reason.until)
        needed = reason.credit or Decimal(0)
        if reason.too_little is not None:
            needed = max(needed, self._least_above(reason.too_little))
        self._wait_for_credit(needed)

    def _least_above(self, too_little: Decimal) -> Decimal:
        """Return the least balance to wait for, once the service has called the balance insufficient.

        :param too_little: the balance by the estimate.
        """
        try:
            balance = self._read_balance()
        except ServiceError as error:
            if not (error.transient or is_out_of_credit(error)):
                raise
            log.info("The balance cannot be read, so the wait is for more than the estimate has: %s", error)
            return too_little + 1
        if balance.post_paid:
            raise CreditError("The service says that the credit is out, and that the account is post-paid")
        # Whatever the estimate says: the service has just said that this balance is too low.
        return balance.amount + 1 if balance.amount <= too_little else Decimal(0)

    def _read_balance(self) -> Balance:
        balance = self.reconciliation.observe()
        self.progress.saw(balance)
        return balance

    def _require_credit(self, plan: Plan) -> None:
        balance = plan.balance
        if balance is None or covers(prepaid(balance), plan.cost):
            return
        if self.options.on_low_balance == "fail":
            raise CreditError(
                f"The balance is {balance.amount:f}, and the {plan.to_send} "
                f"{by_count(plan.to_send, 'message costs', 'messages cost')} about {plan.cost:f} "
                f"{by_count(plan.cost, 'credit')}, so nothing was sent. Top up, or set on_low_balance='wait' to wait "
                "for credit without a slot"
            )
        self._wait_for_credit(plan.cost)

    def _wait_until(self, opening: datetime) -> NoReturn:
        log.info("Outside of the sending hours: waiting until %s", opening.isoformat())
        self.progress.note(AttemptState.WAITING_FOR_HOURS, {"until": opening.isoformat()})
        wait_until(opening)

    def _wait_for_credit(self, needed: Decimal) -> NoReturn:
        log.info("Waiting for credit: the balance has to be at least %s", needed)
        self.progress.note(AttemptState.WAITING_FOR_CREDIT, {"balance_needed": float(needed)})
        wait_for_balance(self.task.sms_conn_id, needed)


def _refuses_account(error: ServiceError) -> bool:
    """Return whether the service refused the account itself: with a 401, or with a 403 that does not name credit."""
    forbidden = error.status == HTTPStatus.FORBIDDEN and not is_out_of_credit(error)
    return isinstance(error, AuthenticationError) or forbidden


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
