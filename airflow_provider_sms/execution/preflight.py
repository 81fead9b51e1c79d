"""The conditions for sending a plan: a person's approval, the hours, the credit; and the wait for each.

:mod:`airflow_provider_sms.sending.stop_conditions` decides whether the hours and the credit allow a send, here and
before each claim.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_sms.exceptions import AuthenticationError, CreditError, InputError, NotSentError, ServiceError
from airflow_provider_sms.execution.deferral import wait_for_balance, wait_until
from airflow_provider_sms.execution.human_input import ask_about_plan
from airflow_provider_sms.execution.xcom import APPROVAL, PLAN, push
from airflow_provider_sms.formatting import by_count, counted
from airflow_provider_sms.ledger.approvals import (
    SEND,
    STOP,
    PlanExtent,
    asked,
    latest_approval,
    note_question,
    record_approval,
)
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.sending.stop_conditions import (
    closed_for_all,
    covers,
    has_responded,
    is_out_of_credit,
    prepaid,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.decision_rules import DecisionRules
    from airflow_provider_sms.execution.human_input import PlanDecision
    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import BulkOptions, SendingTask
    from airflow_provider_sms.execution.telemetry import Telemetry
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.scan import Scan
    from airflow_provider_sms.sending.reconciliation import Reconciliation
    from airflow_provider_sms.sending.stop_conditions import StopReason
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)


class AccountStatus(NamedTuple):
    """The account as the service showed it before a send.

    :param balance: None where it could not be read.
    :param error: why no plan with messages may be sent without the balance; None where one may.
    :param reached: whether the service responded.
    """

    balance: Balance | None
    error: ServiceError | None = None
    reached: bool = True


@dataclass(frozen=True)
class Preflight:
    """Checks the conditions of a send, and gives up the slot until they hold.

    :param rules: the rules of the question to a person.
    :param reconciliation: reads and records the balance.
    """

    task: SendingTask
    options: BulkOptions
    rules: DecisionRules
    campaign: str
    session: LedgerSession
    reconciliation: Reconciliation
    telemetry: Telemetry

    def read_account(self) -> AccountStatus:
        """Read the balance. No error is raised yet: a plan without messages needs no balance."""
        try:
            return AccountStatus(self._read_balance())
        except ServiceError as error:
            log.info("The plan is without the balance, which cannot be read: %s", error)
            if not self._requires_balance(error):
                return AccountStatus(None, reached=has_responded(error))
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

    def require(
        self,
        plan: Plan,
        account: AccountStatus,
        scan: Scan,
        decision: PlanDecision | None,
        *,
        has_sent: bool,
    ) -> None:
        """Return if the plan may be sent now; otherwise wait: for a person, then for the hours, then for credit.

        :param scan: the table that the plan is of.
        :param decision: the decision of the person for whom this attempt waited; None where it has not waited for one.
        :param has_sent: whether an earlier leg of this attempt sent something.
        :raises ServiceError: the balance could not be read, and nothing may be sent without it. Nobody is
            asked if the service refused the account.
        :raises AirflowFailException: the person said no, or nobody decided in time.
        :raises InputError: the approved plan is no longer that of the source, which has nothing to send now.
        :raises CreditError: there is not enough credit, and the task does not wait for it.
        """
        if decision is not None:
            self._require_yes(decision, has_sent=has_sent)
        if not plan.to_send:
            self._require_approved_plan(plan, decision, has_sent=has_sent)
            if account.error is not None and plan.unknown and self.options.on_unknown == "reconcile":
                raise account.error
            return
        # Another error may pass while the task waits for a person or the hours: the balance is read anew.
        if account.error is not None and _refuses_account(account.error):
            raise account.error
        if decision is not None or self._needs_approval(plan):
            self._require_approval(plan, scan, decision, has_sent=has_sent)
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
        self.telemetry.saw(balance)
        return balance

    def _needs_approval(self, plan: Plan) -> bool:
        """Return whether a person must approve.

        Once the task has asked, and after a *Stop* in the campaign, the next plan needs it, however small.
        """
        above = self.options.approval_threshold
        if self.options.approve or above is None:
            return self.options.approve
        if above.is_exceeded_by(plan) or asked(self.session.store, self.session.who):
            return True
        latest = latest_approval(self.session.store, self.campaign)
        return latest is not None and latest.decision == STOP

    def _require_yes(self, decision: PlanDecision, *, has_sent: bool) -> None:
        """Refuse the plan if the person said no, or nobody decided in time.

        :raises AirflowFailException: in either case; a retry would ask once more.
        """
        if decision.expired:
            raise AirflowFailException(
                f"Nobody decided about campaign {self.campaign} within approval_timeout, so nothing was sent. Clear "
                "the task to ask again"
            )
        if not decision.send:
            more = "more of " if has_sent else ""
            raise AirflowFailException(f"{decision.by} decided not to send {more}campaign {self.campaign}")

    def _require_approved_plan(self, plan: Plan, decision: PlanDecision | None, *, has_sent: bool) -> None:
        """Refuse a plan without messages if a person approved another plan, now or before the last wait.

        The approved messages may all have been sent, or suppressed, meanwhile: then it is the same plan.

        :raises InputError: it is another plan. A retry would find nothing to ask about, and succeed.
        """
        questions = asked(self.session.store, self.session.who)
        if decision is not None:
            shown, by = decision.about(questions) or questions, decision.by
        else:
            latest = latest_approval(self.session.store, self.campaign, {each.plan_id for each in questions})
            if latest is None or latest.decision != SEND or has_sent or not self.task.resumed:
                return
            shown, by = [each for each in questions if each.plan_id == latest.plan_id], latest.decided_by
        for each in shown:
            if each.messages and each.plan_id != plan.id:
                raise InputError(
                    f"Campaign {self.campaign}: {by} approved plan {each.plan_id} of "
                    f"{counted(each.messages, 'message')}. The recipients or their texts have changed since, and plan "
                    f"{plan.id} has no message to send, so nothing more was sent. That plan, in the log above, says "
                    "what became of the rows of the source: correct it, and clear the task"
                )

    def _require_approval(self, plan: Plan, scan: Scan, decision: PlanDecision | None, *, has_sent: bool) -> None:
        session, extent = self.session, _extent(plan, scan)
        questions = asked(session.store, session.who)
        if decision is not None:
            shown = decision.about(questions)
            if shown and all(each.covers(extent) for each in shown):
                if len(shown) > 1:  # a decision about one plan is on record
                    self._record_yes(extent, decision.by)
                return
            sent = "Nothing more was sent" if has_sent else "Nothing was sent"
            log.warning("%s approved %s. %s", decision.by, _what_differs(shown, extent), sent)
        # Another mapped copy may have been approved since. After a stop of any plan, a person is asked again.
        latest = latest_approval(session.store, self.campaign, {plan.id})
        if latest is not None and latest.allows(extent):
            refusal = self.rules.refusal_of_earlier(latest.decided_by)
            if refusal is None:
                log.info("%s has approved plan %s", latest.decided_by, plan.id)
                push_approval(self.task.context, latest.plan_id, SEND, latest.decided_by, latest.decided_at)
                return
            log.info(
                "%s has approved plan %s, which does not count, since that user %s", latest.decided_by, plan.id, refusal
            )
        if any(each.name != extent.name for each in questions):
            log.warning(
                "A person is asked again. Airflow may show an earlier question: look at the plan above or in the XCom "
                "%r, and put %s into the field of the form",
                PLAN,
                extent.name,
            )
        log.info("Waiting for a person to approve plan %s, in Airflow's required actions", plan.id)
        note_question(session.store, self.campaign, extent, claimant_id=session.claimant_id)
        self.telemetry.note(AttemptState.WAITING_FOR_APPROVAL, {"to_send": plan.to_send})
        # A decision about another plan restarts the time limit; one that did not count is no decision here.
        deadline = self.task.deadline if decision is None else None
        ask_about_plan(self.task.context, self.rules, plan, scan.samples, name=extent.name, deadline=deadline)

    def _record_yes(self, extent: PlanExtent, by: str) -> None:
        _record(self.task.context, self.session, self.campaign, extent, decision=SEND, by=by)

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
        self.telemetry.note(AttemptState.WAITING_FOR_HOURS, {"until": opening.isoformat()})
        wait_until(opening)

    def _wait_for_credit(self, needed: Decimal) -> NoReturn:
        log.info("Waiting for credit: the balance has to be at least %s", needed)
        self.telemetry.note(AttemptState.WAITING_FOR_CREDIT, {"balance_needed": float(needed)})
        wait_for_balance(self.task.sms_conn_id, needed)


def record_decision(context: Context, session: LedgerSession, campaign: str, decision: PlanDecision) -> None:
    """Record a person's decision about the plan that the person was shown, before anything else can fail.

    An approval that may be about several plans is recorded once it is known to cover the plan of the source.

    :raises LedgerError: when it was not committed.
    """
    questions = asked(session.store, session.who)
    shown = decision.about(questions)
    if decision.send:
        if len(shown) == 1:
            _record(context, session, campaign, shown[0], decision=SEND, by=decision.by)
    elif shown := shown or questions:
        _record(context, session, campaign, shown[0], decision=STOP, by=decision.by)


def _record(
    context: Context,
    session: LedgerSession,
    campaign: str,
    plan: PlanExtent,
    *,
    decision: str,
    by: str,
) -> None:
    at = record_approval(session.store, campaign, plan, decision, by, claimant_id=session.claimant_id)
    log.info("%s decided about plan %s: %s", by, plan.plan_id, decision)
    push_approval(context, plan.plan_id, decision, by, at)


def push_approval(context: Context, plan_id: str, decision: str, by: str, at: float) -> None:
    """Push a person's decision about a plan as an XCom.

    :param decision: ``send`` or ``stop``.
    :param at: seconds since the epoch.
    """
    when = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")
    push(context, APPROVAL, {"plan": plan_id, "decision": decision, "by": by, "at": when})


def _what_differs(shown: Iterable[PlanExtent], plan: PlanExtent) -> str:
    """Return what a person approved, and why that is no approval of a plan.

    What the person wrote into the form is not quoted: it may be anything, such as a number or a text.

    :param shown: the plans that the decision may be about.
    """
    for each in shown:
        if each.plan_id != plan.plan_id:
            return (
                f"plan {each.plan_id}, but the recipients or their texts have changed since: it is plan {plan.plan_id} "
                "now"
            )
        if not each.covers(plan):
            people = f"{plan.messages} {by_count(plan.messages or 0, 'person', 'people')}"
            return f"plan {each.plan_id}, but it would text {people} now, some of whom it left out then"
    return "a plan, but the field of the form names none that this task asked about"


def _extent(plan: Plan, scan: Scan) -> PlanExtent:
    return PlanExtent(plan.id, plan.to_send, scan.subset(), plan.cost)


def _refuses_account(error: ServiceError) -> bool:
    """Return whether the service refused the account itself: with a 401, or with a 403 that does not name credit."""
    forbidden = error.status == HTTPStatus.FORBIDDEN and not is_out_of_credit(error)
    return isinstance(error, AuthenticationError) or forbidden
