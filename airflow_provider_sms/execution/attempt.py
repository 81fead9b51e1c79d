"""One try to text a table: its check, its plan, what it waits for, its sending, its summary and its report."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.execution.deferral import gives_up_slot, read_parking
from airflow_provider_sms.execution.delivery import Delivery
from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.execution.human_input import is_verdict, read_verdict
from airflow_provider_sms.execution.ledger_session import entered
from airflow_provider_sms.execution.planning import PlanStep
from airflow_provider_sms.execution.preflight import Preflight
from airflow_provider_sms.execution.report_file import ReportFile
from airflow_provider_sms.execution.telemetry import Telemetry
from airflow_provider_sms.execution.xcom import responses_of
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.hooks.ledger import look_into_ledger
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.ledger.decisions import to_resend
from airflow_provider_sms.planning.scan import outgoing_blocks
from airflow_provider_sms.reporting.summary import facts, one_line, replay, summarise
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.sender import SendingOptions
from airflow_provider_sms.sending.stop_conditions import Brakes, Caution, Credit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.human_input import Verdict
    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.messages.outgoing import Block, Outgoing
    from airflow_provider_sms.operators.bulk import BulkSmsOperator
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance, SendResponse


class BulkAttempt:
    """One try of a :class:`BulkSmsOperator`, or the part of it that comes after a wait.

    :param task: whose arguments are rendered.
    :param event: what it waited for; None where it has not waited.
    """

    def __init__(self, task: BulkSmsOperator, context: Context, event: Any) -> None:
        self._task = task
        self._context = context
        self._event = event
        self._before = None if event is None else self._summary_so_far()
        self._tally = SendCounts()
        self._watch = Telemetry(
            context, task.sms_conn_id, task.campaign_name(context), counted=self._before, resumed=event is not None
        )
        self._bulk_plan = PlanStep(task, context, self._watch)
        self._report = ReportFile(task, context, self._bulk_plan)

    def run(self) -> dict[str, Any]:
        """Check every row, send, and give the summary; it is pushed when this raises, too."""
        task = self._task
        with ExitStack() as stack, self._watch.until_ended(self._summary):
            stack.callback(self._bulk_plan.close)
            try:
                if task.dry_run_only:
                    self._dry_run()
                else:
                    self._enter_and_send(stack)
                self._report.require_written()
            except Exception:
                task.push(self._context, "return_value", self._summary())
                raise
        summary = self._summary()
        describe_on_assets(self._context, facts(summary))
        return summary

    def _read_arguments(self) -> None:
        task = self._task
        task.check_arguments()
        self._tally.max_event_ids = task.max_xcom_responses
        self._report.read_argument()

    def _dry_run(self) -> None:
        self._read_arguments()
        with look_into_ledger(self._task.ledger_conn_id) as store:
            if store is not None:
                self._task.look_up_campaign(self._context, store)
            self._check(store, None, lambda _: self._task.on_unknown == "resend")
            plan = self._bulk_plan.make(store, self._balance_for_plan())
        self._tally.suppressed = plan.suppressed
        self._report.write(self._tally.seen, None, "a dry run sends nothing", nothing_sent=True)
        self._task.log.info("Nothing is sent in a dry run: %d messages are ready", plan.to_send)

    def _balance_for_plan(self) -> Balance | None:
        try:
            return SmsHook(self._task.sms_conn_id).get_balance()
        except SmsError as error:
            self._task.log.info("The plan is without the balance, which cannot be read: %s", error)
            return None

    def _enter_and_send(self, stack: ExitStack) -> None:
        """Enter the ledger, and send what may be sent.

        :param stack: closes the ledger, once the end of the try is noted there.
        """
        task = self._task
        try:
            # Before anything else can fail: the next try looks for the trace of this one.
            entry = stack.enter_context(entered(self._context, task.ledger_conn_id, resumed=self._event is not None))
        except SmsError:
            # For the counts; and what is wrong with the table is to be mended first.
            self._read_arguments()
            self._report.path = None  # without a ledger there is nothing true to report
            self._check(None, None, lambda _: False)
            raise
        self._watch.enter(entry, task.look_up_campaign(self._context, entry.store))
        self._read_arguments()
        settings = task.get_settings()
        verdict = self._take_event(entry)
        ledger = self._ledger(entry)
        if self._event is not None:
            replay(ledger, self._tally)
        options = self._options(entry)
        self._check(entry.store, ledger, options.resends)
        clearance = Preflight(task, self._context, entry, settings, self._watch)
        try:
            plan = self._bulk_plan.make(entry.store, clearance.balance())
            self._clear(clearance, plan, verdict)
        except Exception as error:
            words = describe(error) if isinstance(error, SmsError) else "it was not approved"
            self._report.write(self._tally.seen, ledger, words, nothing_sent=True)
            raise
        self._send(entry, settings, options, plan, clearance)

    def _options(self, entry: LedgerSession) -> SendingOptions:
        task = self._task
        return SendingOptions(
            chunk_size=task.chunk_size,
            concurrency=task.concurrency,
            max_requests_per_second=task.max_requests_per_second,
            resend_unknown=task.on_unknown == "resend",
            resend_requests=to_resend(entry.store, task.campaign_name(self._context), entry.who),
        )

    def _clear(self, clearance: Preflight, plan: Plan, verdict: Verdict | None) -> None:
        """See that the plan may be sent, or give up the slot until it may; until then its counts are the plan's."""
        sent_so_far, self._tally = self._tally, self._counts_of(plan)
        with self._parking():
            clearance.require(plan, self._bulk_plan.samples, verdict)
        if not plan.is_settled:
            self._tally = sent_so_far

    def _counts_of(self, plan: Plan) -> SendCounts:
        """Count what was sent so far, and all else as the plan has it."""
        others = max(0, plan.already_sent - self._tally.replayed)
        already = others if self._before is None else self._before["already_sent"]
        tally = replace(
            deepcopy(self._tally),
            unknown=plan.unknown,
            duplicate=plan.duplicate,
            suppressed=plan.suppressed,
            capped=plan.capped,
            already_sent=already,
            met=plan.already_sent - already,
        )
        tally.seen.until = plan.rows
        return tally

    @contextmanager
    def _parking(self) -> Iterator[None]:
        """Leave the counts for whoever looks, where the try gives up its slot in the block."""
        try:
            yield
        except BaseException as signal:
            if gives_up_slot(signal):
                self._task.push(self._context, "return_value", self._summary())
            raise

    def _take_event(self, entry: LedgerSession) -> Verdict | None:
        """Do what a person has answered; what else it waited for has come by itself.

        :raises AirflowFailException: they said that the task fails; or the balance cannot be read.
        """
        if self._event is None or read_parking(self._event) != "answer":
            return None
        if is_verdict(self._event):
            return read_verdict(self._event)
        self._task.take_answer(entry, self._event)
        return None

    def _check(
        self, store: LedgerBackend | None, ledger: CampaignLedger | None, resends: Callable[[int], bool]
    ) -> None:
        """Look at every row, and refuse a table that must not be sent.

        :param ledger: for the report; None where nothing was sent before.
        :param resends: says of an unknown request whether its messages are sent again.
        """
        try:
            self._bulk_plan.check(store, self._report.path, resends)
        except InputError:
            if self._bulk_plan.is_checked:
                words = "other rows cannot be texted, so nothing was sent"
                self._report.write(self._tally.seen, ledger, words, nothing_sent=True)
            raise

    def _send(
        self, entry: LedgerSession, settings: ClientSettings, options: SendingOptions, plan: Plan, clearance: Preflight
    ) -> None:
        task = self._task

        def post(client: SmsClient, messages: Sequence[Outgoing]) -> SendResponse:
            pairs = [{"Content": m.content, "Destination": str(m.destination)} for m in messages]
            return client.send_bulk(pairs, send_options=task.send_options)

        credit = None
        if task.wait_for_credit and plan.balance is not None and not plan.balance.post_paid:
            credit = Credit(self._bulk_plan.prices, plan.cost, plan.balance.amount)
        # Where the service did not answer just now, one request goes first.
        caution = Caution(on=plan.balance is None)
        delivery = Delivery(
            task,
            self._context,
            entry,
            settings,
            None if plan.is_settled else self._blocks,
            post,
            total=self._bulk_plan.valid,
            options=options,
            kind="bulk",
            tally=self._tally,
            watch=self._watch,
            finish=self._finish,
            keys=self._bulk_plan.keys,
            cap=task.frequency_cap,
            brakes=Brakes(task.send_window, credit, task.max_error_rate, caution),
            park=clearance.wait,
        )
        with self._parking():
            delivery.run()

    def _ledger(self, entry: LedgerSession) -> CampaignLedger:
        return entry.campaign(self._task.campaign_name(self._context), "bulk", self._task.frequency_cap)

    def _blocks(self) -> Iterator[Block]:
        source, preparation = self._bulk_plan.opened()
        task = self._task
        # At a given rate the ledger is never what takes the time, and the table's order may have been meant.
        keep_order = task.max_requests_per_second is not None
        return outgoing_blocks(
            source,
            preparation,
            self._bulk_plan.scan,
            task.stop_signal,
            keep_order=keep_order,
            suppressed=self._bulk_plan.suppressed,
        )

    def _finish(self, ledger: CampaignLedger, error: Exception | None) -> None:
        task = self._task
        task.push(self._context, "return_value", self._summary())
        task.log.info("%s", one_line(self._summary()))
        try:
            responses = responses_of(ledger, task.max_xcom_responses)
            task.push(self._context, "responses", responses)
            if isinstance(responses, dict):
                task.log.info("The %d answers are too many for an XCom: the ledger has them", responses["requests"])
        finally:
            # Also where the ledger can no longer be read: then the report says so of each row.
            self._report.write(self._tally.seen, ledger, self._why_not_sent(error))
            task.push(self._context, "return_value", self._summary())

    def _why_not_sent(self, error: Exception | None) -> str | None:
        """Return the reason of rows that were not sent; None where there are none."""
        if error is not None:
            return describe(error)
        return "the service took none of the messages of its request" if self._tally.none_taken else None

    def _summary(self) -> dict[str, Any]:
        scan = self._bulk_plan.scan
        if self._before is not None and not self._bulk_plan.is_checked:
            return self._before  # it ended before it came to look at anything
        summary = summarise(self._task.campaign_name(self._context), scan.rows, scan.invalid, self._tally)
        return {**summary, "report": self._report.written or (self._before or summary)["report"]}

    def _summary_so_far(self) -> dict[str, Any] | None:
        """Give the summary that this try pushed before it waited; None where it pushes no XComs."""
        ti = self._context["ti"]
        found = ti.xcom_pull(task_ids=self._task.task_id, key="return_value", map_indexes=ti.map_index)
        return found if isinstance(found, dict) else None
