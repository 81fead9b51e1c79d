"""What has to be there before a plan is sent: a person's word, the hours, the credit; and the wait for it."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_sms.exceptions import AuthenticationError, CreditError, ServiceError
from airflow_provider_sms.execution.deferral import wait_for_balance, wait_until
from airflow_provider_sms.execution.human_input import FIELD, wait_for_verdict
from airflow_provider_sms.ledger.approvals import (
    SEND,
    STOP,
    asked,
    latest_approval,
    note_question,
    record_approval,
)
from airflow_provider_sms.sending.stop_conditions import INSUFFICIENT_CREDITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.human_input import Verdict
    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.telemetry import Telemetry
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.operators.bulk import BulkSmsOperator
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.stop_conditions import StopReason
    from airflow_provider_sms.service.responses import Balance

XCOM = "approval"


class Preflight:
    """Asks for all that a plan needs before it is sent, and gives up the slot until it is there.

    :param task: whose arguments are rendered.
    :param settings: of the client.
    :param watch: tells others what is waited for.
    """

    def __init__(
        self, task: BulkSmsOperator, context: Context, entry: LedgerSession, settings: ClientSettings, watch: Telemetry
    ) -> None:
        self._task = task
        self._context = context
        self._entry = entry
        self._settings = settings
        self._watch = watch
        self._campaign = task.campaign_name(context)
        self._refused: ServiceError | None = None

    def balance(self) -> Balance | None:
        """Return the balance; None where it cannot be read, and nothing depends on it.

        A token that the service refuses here is kept for :meth:`require`: no message could be sent with it.

        :raises ServiceError: it cannot be read, and something does.
        """
        try:
            balance = self._read_balance()
        except ServiceError as error:
            if self._task.check_balance or self._task.wait_for_credit:
                raise
            if _refuses_all(error):
                self._refused = error
                return None
            self._task.log.info("The plan is without the balance, which cannot be read: %s", error)
            return None
        return balance

    def require(self, plan: Plan, samples: Sequence[tuple[str, str]], verdict: Verdict | None) -> None:
        """See that the plan may be sent now, or wait: for a person, then for the hours, then for credit.

        :param samples: some destinations and texts, for the person.
        :param verdict: what the person said for whom this try waited; None: it has not waited for one.
        :raises ServiceError: the service refused the token when the balance was read.
        :raises AirflowFailException: the person said no.
        :raises CreditError: there is not enough credit, and nobody wants to wait for it.
        """
        if verdict is not None and not verdict.send:
            self._record(plan, STOP, verdict.by)
            raise AirflowFailException(f"{verdict.by} decided that campaign {self._campaign} is not sent")
        if not plan.to_send:
            return
        if self._refused is not None:
            raise self._refused
        if self._needs_approval(plan):
            self._require_approval(plan, samples, verdict)
        window = self._task.send_window
        if window is not None and not window.recipient_time_zone:
            opening = window.closed_until(datetime.now(timezone.utc))
            if opening is not None:
                self._wait_until(opening)
        if self._task.check_balance or self._task.wait_for_credit:
            self._require_credit(plan)

    def wait(self, halt: StopReason) -> NoReturn:
        """Give up the slot until what a send waits for is there.

        :raises CreditError: credit is not what is missing.
        """
        if halt.until is not None:
            self._wait_until(halt.until)
        needed = halt.credit or Decimal(0)
        if halt.too_little is not None:
            balance = self._read_balance()
            if balance.post_paid:
                raise CreditError("The service says that the credit is out, and that the account is post-paid")
            if balance.amount <= halt.too_little:
                # Whatever the estimate says: the service has just said that this does not do.
                needed = max(needed, balance.amount + 1)
        self._wait_for_credit(needed)

    def _read_balance(self) -> Balance:
        with self._settings.client() as client:
            balance = client.get_balance()
        self._watch.saw(balance)
        return balance

    def _needs_approval(self, plan: Plan) -> bool:
        above = self._task.approval_threshold
        return self._task.approve or (above is not None and above.is_exceeded_by(plan))

    def _require_approval(self, plan: Plan, samples: Sequence[tuple[str, str]], verdict: Verdict | None) -> None:
        entry, log = self._entry, self._task.log
        questions = asked(entry.store, entry.who)
        first = questions[0].plan_id if questions else None
        if verdict is not None:
            meant = verdict.plan_id or first
            # The last question about it was answered, of however many messages that was.
            shown = next((each.messages for each in reversed(questions) if each.plan_id == meant), 0)
            if meant == plan.id and plan.to_send <= shown:
                self._record(plan, SEND, verdict.by)
                return
            changed = (
                f"it would text {plan.to_send} people now and not {shown}: fewer are suppressed"
                if meant == plan.id
                else f"the recipients or their texts have changed since: it is plan {plan.id} now"
            )
            log.warning("%s approved plan %s, but %s. Nothing was sent", verdict.by, meant, changed)
        latest = latest_approval(entry.store, self._campaign)
        if latest is not None and latest.allows(plan.id, plan.to_send):
            log.info("%s has approved plan %s", latest.decided_by, plan.id)
            self._push(latest.plan_id, SEND, latest.decided_by, latest.decided_at)
            return
        if first not in (None, plan.id):
            log.warning(
                "A person is asked again. Airflow shows the question with the first plan, %s: look at the plan above "
                "or in the XCom %r, and put its id, %s, into the field of the form",
                first,
                FIELD,
                plan.id,
            )
        log.info("Waiting for a person to approve plan %s, in Airflow's required actions", plan.id)
        note_question(entry.store, self._campaign, plan.id, claimant_id=entry.claimant_id, messages=plan.to_send)
        self._watch.note("waiting for approval", {"to_send": plan.to_send})
        wait_for_verdict(self._task, self._context, plan, samples)

    def _record(self, plan: Plan, decision: str, by: str) -> None:
        entry = self._entry
        at = record_approval(
            entry.store,
            self._campaign,
            plan.id,
            decision,
            by,
            claimant_id=entry.claimant_id,
            messages=plan.to_send,
            cost=plan.cost,
        )
        self._task.log.info("%s decided about plan %s: %s", by, plan.id, decision)
        self._push(plan.id, decision, by, at)

    def _push(self, plan_id: str, decision: str, by: str, at: float) -> None:
        when = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")
        approval = {"plan": plan_id, "decision": decision, "by": by, "at": when}
        self._task.push(self._context, XCOM, approval)

    def _require_credit(self, plan: Plan) -> None:
        balance = plan.balance
        if balance is None or balance.post_paid or balance.amount >= plan.cost:
            return
        if not self._task.wait_for_credit:
            raise CreditError(
                f"The balance is {balance.amount:f}, and the {plan.to_send} messages cost about {plan.cost:f} credits, "
                "so nothing was sent. Top up, or set wait_for_credit=True to wait for credit without a slot"
            )
        self._wait_for_credit(plan.cost)

    def _wait_until(self, opening: datetime) -> NoReturn:
        self._task.log.info("Outside of the sending hours: waiting until %s", opening.isoformat())
        self._watch.note("waiting for hours", {"until": opening.isoformat()})
        wait_until(self._task, opening)

    def _wait_for_credit(self, needed: Decimal) -> NoReturn:
        self._task.log.info("Waiting for credit: the balance has to be at least %s", needed)
        self._watch.note("waiting for credit", {"balance_needed": float(needed)})
        wait_for_balance(self._task, needed, self._task.credit_interval)


def _refuses_all(error: ServiceError) -> bool:
    """Return whether the service refused the account itself: its token, or a 403 that says no word of credit."""
    forbidden = error.status == HTTPStatus.FORBIDDEN and error.code != INSUFFICIENT_CREDITS
    return isinstance(error, AuthenticationError) or forbidden
