"""One attempt to text a table: its ledger, check, plan, conditions, sending, summary and report, in this order."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InputError, LedgerError, LedgerLostError, SmsError
from airflow_provider_sms.execution.account import account_of, close_earlier, reconciliation_of
from airflow_provider_sms.execution.delivery import Delivery, DeliveryEnd
from airflow_provider_sms.execution.failures import (
    describe,
    failing_for_good_if_lost,
    graver,
    nothing_more,
    saying_nothing_more,
)
from airflow_provider_sms.execution.ledger_session import claimant_of, entered
from airflow_provider_sms.execution.planning import TableCheck, plan_in_markdown, plan_send, several_runs_in_words
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.execution.report_file import (
    ReportFile,
    refuse_report_in,
    report_path,
    write_report,
)
from airflow_provider_sms.execution.waits import Preflight, require_balance
from airflow_provider_sms.execution.xcom import (
    PLAN,
    SUMMARY,
    push,
    push_responses,
    responses_of,
)
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.hooks.ledger import open_ledger_if_present
from airflow_provider_sms.ledger.preview import CampaignPreview
from airflow_provider_sms.messages.blocks import outgoing_blocks
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.changed_texts import EVERY_MESSAGE, messages_of
from airflow_provider_sms.planning.limits import REPEATS_ADVICE, repeats_in_words
from airflow_provider_sms.reporting.row_counts import (
    COUNTS,
    RowCounts,
    count_rows,
    counts_of_check,
)
from airflow_provider_sms.reporting.summary import Sums, add_up, facts, one_line, summarise, with_report
from airflow_provider_sms.sending.sender import SendingOptions
from airflow_provider_sms.sending.stop_conditions import Caution, Credit, StopConditions, prepaid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from airflow_provider_sms.execution.options import BulkOptions, SendingTask
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)


class BulkAttempt:
    """One attempt of a :class:`BulkSmsOperator`, from the top also after each wait without a slot.

    :param read_options: returns the checked arguments. Called once the attempt is in its ledger.
    :param read_source: returns the recipients, as the operator takes them. Called once.
    :param dry_run: whether to make the plan and send nothing.
    """

    def __init__(
        self,
        task: SendingTask,
        read_options: Callable[[], BulkOptions],
        read_source: Callable[[], Any],
        *,
        dry_run: bool,
    ) -> None:
        self._task = task
        self._context = task.context
        self._read_options = read_options
        self._read_source = read_source
        self._dry_run_only = dry_run
        self._campaign = task.campaign
        self._check: TableCheck | None = None
        self._counts: RowCounts | None = None
        """The rows by who holds them at the end; None until then."""
        self._sums = Sums()
        self._has_sent = task.resumed
        """Whether the attempt has sent something, or may have."""
        self._reconciliation: Reconciliation | None = None
        self._report_path: Any = None
        self._report = ReportFile()
        self._progress = Progress(task.context, task.sms_conn_id)

    def run(self) -> dict[str, Any]:
        """Check every row, send, and return the summary, which is pushed even when this raises."""
        with (
            ExitStack() as stack,
            self._progress.until_ended(self._summary),
            saying_nothing_more(lambda: self._has_sent),
        ):
            try:
                if self._dry_run_only:
                    self._dry_run(stack)
                else:
                    self._enter_and_send(stack)
                self._report.require_written()
            except BaseException:  # a wait without a slot among them
                try:
                    self._push_summary()
                except Exception as error:  # noqa: BLE001  # what ended the attempt says more
                    log.warning("The summary could not be pushed: %s", type(error).__name__)
                raise
        summary = self._summary()
        describe_on_assets(self._context, facts(summary))
        return summary

    def _options(self) -> BulkOptions:
        options = self._read_options()
        if options.report is not None:
            self._report_path = report_path(options.report)
        return options

    def _dry_run(self, stack: ExitStack) -> None:
        options = self._options()
        with open_ledger_if_present(self._task.ledger_conn_id) as store:
            check = self._read_table(options, stack, lambda: self._look(store, options))
            try:
                with self._task.hook.get_settings().client() as client:
                    balance: Balance | None = client.get_balance()
            except SmsError as error:
                log.info("The plan is without the balance, which cannot be read: %s", error)
                balance = None
            plan = self._plan(options, check, store, balance)
        # After the plan of the other rows, so that both are seen at once.
        self._require_sendable(check, None)
        options.limits.check(plan)
        self._write_report(None, "a dry run sends nothing", nothing_sent=True)
        are = by_count(plan.to_send, "message is", "messages are")
        log.info("Nothing is sent in a dry run: %d %s ready", plan.to_send, are)

    def _enter_and_send(self, stack: ExitStack) -> None:
        """Enter the ledger, and send as far as the plan and its conditions allow.

        :param stack: closes the ledger, once the end of the attempt is noted there.
        """
        task = self._task
        try:
            # Before anything else can fail: the next attempt looks for the trace of this one.
            session = stack.enter_context(
                entered(task.context, task.ledger_conn_id, resumed=task.resumed, stop=task.stop)
            )
        except SmsError:
            # For the counts, and because an error in the arguments or the table should be reported first.
            options = self._options()
            self._report_path = None  # without a ledger there is nothing true to report
            check = self._read_table(options, stack, lambda: None)
            if self._has_sent:
                self._counts = counts_of_check(check.table.counts).in_doubt()
            self._require_sendable(check, None)
            raise
        self._progress.enter(session, self._campaign)
        session.hold(self._campaign, task.sms_conn_id)
        options = self._options()
        settings = task.hook.get_settings()
        if task.resumed:
            require_balance(task.event)
        ledger = session.campaign(self._campaign, "bulk", account_of(settings, options.cost_per_part))
        self._sums = add_up(ledger.sent_requests())
        self._has_sent = bool(self._sums.requests)
        reconciliation = self._reconciliation = reconciliation_of(session, settings, self._campaign)
        if options.on_unknown == "reconcile":
            close_earlier(session, ledger, reconciliation)
        check = self._read_table(options, stack, lambda: self._look(session.store, options, ledger.claimants))
        self._require_sendable(check, ledger)
        preflight = Preflight(task, options, self._campaign, reconciliation, self._progress)
        try:
            seen = preflight.read_account()
            plan = self._plan(options, check, session.store, seen.balance)
            options.limits.check(plan)
            if options.approved_plan is not None:
                options.approved_plan.require(PlanId.of(plan, options.send_options))
            preflight.require(plan, seen)
        except Exception as error:
            self._write_report(ledger, describe(error), nothing_sent=True)
            raise
        sending = SendingOptions(
            chunk_size=options.chunk_size,
            concurrency=options.concurrency,
            max_requests_per_second=options.max_requests_per_second,
            on_unknown=options.on_unknown,
        )
        delivery = Delivery(
            task, session, settings, ledger, sending, self._progress, reconciliation, wait=preflight.wait
        )
        stack.enter_context(failing_for_good_if_lost(ledger))
        delivery.begin()
        checked = counts_of_check(check.table.counts)
        done = checked.rows - checked.invalid - plan.to_send
        self._progress.begin(checked.rows - checked.invalid, done, {name: getattr(checked, name) for name in COUNTS})
        end = DeliveryEnd()
        if not plan.is_settled:
            self._counts = checked.in_doubt()  # until they are counted
            end = self._send(options, check, plan, delivery)
        end = self._record(ledger, check, end)
        delivery.conclude(end, self._counts or checked, self._sums)

    def _look(
        self, store: LedgerBackend | None, options: BulkOptions, claimants: Collection[int] = ()
    ) -> CampaignPreview | None:
        """Return the campaign as the ledger knows it; None without a ledger."""
        if store is None:
            return None
        resends = options.on_unknown == "resend"
        return CampaignPreview(store, self._campaign, claimants, resends=resends, who=claimant_of(self._context))

    def _read_table(
        self, options: BulkOptions, stack: ExitStack, look: Callable[[], CampaignPreview | None]
    ) -> TableCheck:
        """Check every row.

        :param look: returns the campaign as the ledger knows it; None where the ledger is not asked.
        """

        def read_source() -> Any:
            source = self._read_source()
            if self._report_path is not None:
                refuse_report_in("source", self._report_path, source)
                refuse_report_in("suppress list", self._report_path, options.suppress)
            return source

        self._check = TableCheck(options, read_source, stack)
        self._check.run(self._task.stop, self._progress, look)
        return self._check

    def _require_sendable(self, check: TableCheck, ledger: CampaignLedger | None) -> None:
        """Refuse a table with rows that cannot be texted.

        :param ledger: for the report; None where nothing was sent before.
        :raises InvalidRowsError: says how many, why and which.
        """
        try:
            check.require_sendable()
        except InputError:
            words = "other rows cannot be texted, so nothing was sent"
            self._write_report(ledger, words, nothing_sent=True)
            raise

    def _plan(
        self, options: BulkOptions, check: TableCheck, store: LedgerBackend | None, balance: Balance | None
    ) -> Plan:
        """Make the plan, log it, and push it as an XCom."""
        plan = plan_send(check.table, options, campaign=self._campaign, store=store, balance=balance)
        log.info("%s", plan.table())
        if plan.repeats and options.key_columns is None:  # with key columns, another text is another matter
            words = repeats_in_words(plan.repeats, plan.campaign)
            log.warning("%s, and one more is in the plan. %s. max_repeats=0 refuses such a plan", words, REPEATS_ADVICE)
        warning = several_runs_in_words(self._context, plan.campaign)
        if warning is not None:
            log.warning("%s", warning)
        shown = {"id": str(PlanId.of(plan, options.send_options)), "markdown": plan_in_markdown(plan, options)}
        push(self._context, PLAN, {**plan.as_json(), **shown, **({} if warning is None else {"warning": warning})})
        self._progress.planned(plan)
        return plan

    def _send(self, options: BulkOptions, check: TableCheck, plan: Plan, delivery: Delivery) -> DeliveryEnd:
        spool, stop = check.table.spool, self._task.stop
        # At a given rate the ledger is never the bottleneck, and the table's order may have been meant.
        keep_order = options.max_requests_per_second is not None
        most = Status.AGAIN if options.plan_binds else Status.UNKNOWN
        held = delivery.ledger.holders
        # Of what is sent again, a request may hold some.
        first = (Status.AGAIN, held) if check.table.counts[Status.AGAIN] else (Status.FREE, None)

        def post(client: SmsClient, messages: Sequence[Outgoing]) -> SendResponse:
            return client.send_bulk(MessageColumns.of(messages), send_options=options.send_options)

        credit = None
        if options.on_low_balance == "wait" and (balance := prepaid(plan.balance)) is not None:
            credit = Credit(check.prices, plan.cost, balance)
        # If the service did not respond just now, one request goes first.
        caution = Caution(on=plan.balance is None)
        return delivery.send(
            outgoing_blocks(spool, stop, keep_order=keep_order, most=first[0], held=first[1]),
            lambda: outgoing_blocks(spool, stop, keep_order=keep_order, most=most, held=held),
            messages_of(spool, *EVERY_MESSAGE),
            post,
            held_by=check.held_by,
            stop_conditions=StopConditions(options.send_window, credit, options.limits.error_rate, caution),
        )

    def _record(self, ledger: CampaignLedger, check: TableCheck, end: DeliveryEnd) -> DeliveryEnd:
        """Count the rows, push summary and responses, and write the report, before anything is raised.

        :returns: the end; with an error if the rows could not be counted.
        """
        table = check.table
        self._has_sent |= end.has_posted
        try:
            self._sums = add_up(ledger.sent_requests())
            ledger.require_whole()
            counts = count_rows(table.spool, table.counts, ledger)
            is_in_doubt = isinstance(end.error, LedgerLostError)
        except LedgerError as error:
            log.warning("The rows are counted without the ledger, which cannot be read: %s", error)
            counts, is_in_doubt = counts_of_check(table.counts), end.has_posted
            end = end._replace(error=graver(end.error, error))
        self._counts = counts.in_doubt() if is_in_doubt else counts
        self._push_summary()
        log.info("%s", one_line(self._summary(), self._sums.of_unknown_cost))
        try:
            responses = responses_of(ledger)
            push_responses(self._context, responses)
            if isinstance(responses, dict):
                are = by_count(responses["requests"], "response is", "responses are")
                log.info("The %d %s too many for an XCom: the ledger has them", responses["requests"], are)
        except LedgerError as error:
            log.warning("The responses could not be pushed, since the ledger cannot be read: %s", error)
        not_sent = "the service took none of the messages of its request" if self._sums.none_taken else None
        self._write_report(ledger, not_sent if end.error is None else describe(end.error))
        self._push_summary()
        return end

    def _write_report(self, ledger: CampaignLedger | None, ended: str | None, *, nothing_sent: bool = False) -> None:
        if self._report_path is None or self._check is None or not self._check.table.is_decided:
            return
        words = nothing_more(ended) if ended is not None and self._has_sent else ended
        self._report = write_report(
            self._report_path, self._check.table.spool, ledger, words, nothing_sent=nothing_sent
        )

    def _push_summary(self) -> None:
        push(self._context, SUMMARY, self._summary())

    def _summary(self) -> dict[str, Any]:
        counts = self._counts
        if counts is None and self._check is not None:
            table = self._check.table
            undecided = RowCounts(not_sent=table.valid, invalid=table.invalid.total)
            undecided = undecided.in_doubt() if self._has_sent else undecided
            counts = counts_of_check(table.counts) if table.is_decided else undecided
        reconciled = 0 if self._reconciliation is None else self._reconciliation.reconciled
        summary = summarise(self._campaign, counts or RowCounts(), self._sums, reconciled)
        return with_report(summary, self._report.written)
