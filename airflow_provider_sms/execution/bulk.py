"""One attempt to text a table: its ledger, check, plan, conditions, sending, summary and report, in this order."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from textwrap import indent
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InvalidRowsError, LedgerError, LedgerLostError, ServiceError, SmsError
from airflow_provider_sms.execution.enter import claimant_of, enter, read_balance
from airflow_provider_sms.execution.errors import airflow_errors, describe, graver, words_of
from airflow_provider_sms.execution.hidden import located
from airflow_provider_sms.execution.report_file import refuse_report_in, report_path, write_report
from airflow_provider_sms.execution.send import End, conclude, send_messages
from airflow_provider_sms.execution.waits import require_balance, wait_before
from airflow_provider_sms.execution.xcom import PLAN, SUMMARY, push, push_responses
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.asset_events import describe_on_assets
from airflow_provider_sms.hooks.ledger import open_ledger_if_present
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.messages.blocks import messages_to_send
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.changed_texts import messages_of, refuse_changed_texts
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.limits import repeats_in_words
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.reporting.row_counts import RowCounts, count_rows, counts_of_check
from airflow_provider_sms.reporting.summary import Sums, add_up, facts, one_line, summarise
from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions, prepaid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.execution.options import BulkOptions
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)


def text_table(task: Any, context: Context, event: Any = None) -> dict[str, Any]:
    """Make one attempt of a :class:`BulkSmsOperator`, and return its summary.

    :param task: the operator.
    :param event: ends a wait without a slot, after which the attempt begins again from the top; None before any.
    """
    with enter(task, context, resumed=event is not None) as run, ExitStack() as stack:
        require_balance(event)
        options: BulkOptions = run.options
        table, report = stack.enter_context(_read_table(task, context, options))
        resends = options.on_unknown == "resend"
        # Before the check: what another process of the task claims meanwhile counts once.
        last, approved, sent = run.ledger.last_request(), options.approved_plan, (0, Decimal(0))
        if approved is not None:
            sent = run.ledger.sent_after(approved.last_request, resends=resends)
        table.decide(run.stop, _read_suppressed(options), run.ledger, resends=resends)
        result = _Result(context, run.campaign, table, report, run)
        result.count(counts_of_check(table.counts), add_up(run.ledger.sent_requests()))
        try:
            _require_sendable(table, options)
            balance = _balance_of(run)
            plan = _plan(context, run.campaign, table, options, last=last, balance=balance)
            run.progress.planned(plan)
            options.limits.check(plan)
            if approved is not None:
                approved.require(PlanId.of(plan, options.send_options), *sent)
            if not plan.is_settled:
                refuse_changed_texts(messages_of(table.spool), run.ledger, run.stop)
            balance = wait_before(run, plan)
        except Exception as error:
            push_responses(context, run.ledger)
            is_for_rows = isinstance(error, InvalidRowsError)
            result.write("other rows cannot be texted" if is_for_rows else words_of(error, resumed=run.resumed))
            raise
        run.progress.begin(result.counts, plan.to_send)
        end = End()
        if not plan.is_settled:
            result.count(result.counts.in_doubt(), result.sums)  # until they are counted
            end = _send(run, table, balance, table.held_by)
        end = _count(run, result, table, end)
        conclude(run, end, result.counts, result.sums)
        result.require_report()
    describe_on_assets(context, facts(result.summary))
    return result.summary


def plan_table(task: Any, context: Context) -> dict[str, Any]:
    """Check every row, make the plan, and send nothing; this needs neither a ledger nor the service."""
    with airflow_errors(), ExitStack() as stack:
        options: BulkOptions = task.read_options()
        who = claimant_of(context)
        campaign = options.campaign or default_name(who)
        store = stack.enter_context(open_ledger_if_present(task.ledger_conn_id))
        table, report = stack.enter_context(_read_table(task, context, options))
        reader = None if store is None else CampaignReader(store, campaign, who)
        last = 0 if reader is None else reader.last_request()
        table.decide(task.stop_signal, _read_suppressed(options), reader, resends=options.on_unknown == "resend")
        result = _Result(context, campaign, table, report)
        result.count(counts_of_check(table.counts), Sums())
        try:
            balance: Balance | None = read_balance(task.hook.get_settings())
        except SmsError as error:
            log.info("The plan is without the balance, which cannot be read: %s", error)
            balance = None
        plan = _plan(context, campaign, table, options, last=last, balance=balance)
        result.write("a dry run sends nothing")
        # After the plan of the other rows, so that both are seen at once.
        _require_sendable(table, options)
        options.limits.check(plan)
        are = by_count(plan.to_send, "message is", "messages are")
        log.info("Nothing is sent in a dry run: %d %s ready", plan.to_send, are)
        result.require_report()
    describe_on_assets(context, facts(result.summary))
    return result.summary


class _Result:
    """What others see of an attempt: its summary, pushed whenever it changes, and the row report.

    :param path: where the report goes; None means that there is none.
    :param run: None in a dry run.
    """

    def __init__(self, context: Context, campaign: str, table: CheckedTable, path: Any, run: Run | None = None) -> None:
        self._context = context
        self._campaign = campaign
        self._spool = table.spool
        self._path = path
        self._run = run
        self._report_error: Exception | None = None
        self._written: str | None = None
        self.counts = RowCounts()
        self.sums = Sums()
        self.summary: dict[str, Any] = {}

    def count(self, counts: RowCounts, sums: Sums) -> None:
        """Push the summary with these counts and sums."""
        self.counts, self.sums = counts, sums
        self._push()

    def write(self, ended: str | None) -> None:
        """Write the report, and push the summary with its place.

        :param ended: why sending ended early; None if it did not.
        """
        if self._path is None:
            return
        ledger = None if self._run is None else self._run.ledger
        self._report_error = write_report(self._path, self._spool, ledger, ended)
        if self._report_error is None:
            self._written = str(self._path)
            self._push()

    def require_report(self) -> None:
        """Raise the error of a report that could not be written, once all else is done."""
        if self._report_error is not None:
            raise self._report_error

    def _push(self) -> None:
        reconciled = 0 if self._run is None else self._run.reconciliation.reconciled
        self.summary = summarise(self._campaign, self.counts, self.sums, reconciled, self._written)
        if self._run is not None:
            self._run.progress.summary = self.summary
        push(self._context, SUMMARY, self.summary)


@contextmanager
def _read_table(task: Any, context: Context, options: BulkOptions) -> Iterator[tuple[CheckedTable, Any]]:
    """Read and compose every row of the source, and yield them with the path of the report, or None."""
    report = None if options.report is None else report_path(options.report)
    source = task.get_source(context)
    if report is not None:
        refuse_report_in("source", report, source)
        refuse_report_in("suppress list", report, options.suppress)
    composer = Composer(
        message=options.message,
        content_column=options.content_column,
        destination_column=options.destination_column,
        default_region=options.default_region,
        key_columns=options.key_columns,
    )
    opened = open_source(located(source), column=options.destination_column)
    log.info("Checking every row of %s", opened.description)
    with closing(CheckedTable(composer, Prices(options.cost_per_part))) as table:
        table.read(opened, task.stop_signal, options.limits)
        yield table, report


def _read_suppressed(options: BulkOptions) -> SuppressedNumbers | None:
    """Read the numbers that are not texted; one that cannot be read may be a recipient's, who would be texted."""
    if options.suppress is None:
        return None
    opened = open_source(located(options.suppress, "suppress"), argument="suppress", column=options.destination_column)
    suppressed = read_suppressed(opened, options.destination_column, options.default_region)
    if suppressed.unreadable.total and options.on_invalid == "fail":
        raise InvalidRowsError(
            suppressed.unreadable.in_words(
                "Nothing was sent, since people on the list could be texted. Correct these rows, or set "
                "on_invalid='skip' to pass over them"
            )
        )
    if suppressed.unreadable.total:
        log.warning("Passed over: %s", suppressed.unreadable.in_words())
    count = len(suppressed.digits)
    numbers, are = by_count(count, "number"), by_count(count, "is", "are")
    log.info("%d %s of %s %s not texted", count, numbers, opened.description, are)
    if former := len(suppressed.former):
        log.warning(
            "%d %s too long or too short today. Taken for a former spelling, each suppresses the numbers of its "
            "country that end with the same seven digits. Look for typing errors",
            former,
            by_count(former, "number of suppress is", "numbers of suppress are"),
        )
    return suppressed


def _require_sendable(table: CheckedTable, options: BulkOptions) -> None:
    """Refuse a table with rows that cannot be texted, as far as the options do not allow them."""
    options.limits.check_invalid(table.invalid, skip_invalid=options.on_invalid == "skip")
    if table.invalid.total:
        log.warning("Left out: %s", table.invalid.in_words())


def _plan(
    context: Context,
    campaign: str,
    table: CheckedTable,
    options: BulkOptions,
    *,
    last: int,
    balance: Balance | None,
) -> Plan:
    """Make the plan of a checked table, log it, and push it as an XCom.

    :param last: the last request in the ledger before the rows were decided; 0 where there is none.
    :param balance: the balance now; None if it was not read.
    """
    plan = table.plan(campaign, chunk_size=options.chunk_size, balance=balance)
    log.info("%s", plan.table())
    if plan.repeats and options.key_columns is None:  # with key columns, another text is another matter
        words = repeats_in_words(plan, "and one more is in the plan")
        log.warning("%s. max_repeats=0 refuses such a plan", words)
    plan_id = str(PlanId.of(plan, options.send_options, last))
    push(context, PLAN, {**plan.as_json(), "id": plan_id, "markdown": _in_markdown(plan, options)})
    return plan


def _in_markdown(plan: Plan, options: BulkOptions) -> str:
    """Return a plan for a person who has to approve it: its figures and the text's template, no number and no text.

    All of it is a block of code: Airflow's page fetches images, and turns bare URLs and e-mail addresses into links,
    even after a backslash or written with character references.
    """
    texts = ("The text", options.message) if options.message else ("The column with the texts", options.content_column)
    return indent(f"{plan.table()}\n\n{texts[0]}:\n\n{texts[1]}", "    ", lambda _: True)


def _balance_of(run: Run) -> Balance | None:
    """Return the balance for the plan; None where it cannot be read, which matters only to ``on_low_balance``."""
    try:
        return run.reconciliation.observe()
    except ServiceError as error:
        log.info("The plan is without the balance, which cannot be read: %s", error)
        return None


def _send(run: Run, table: CheckedTable, balance: Balance | None, held_by: Collection[int]) -> End:
    options: BulkOptions = run.options
    held = run.ledger.holders

    def messages(most: Status, *, looks: bool) -> Iterator[Outgoing]:
        # At a given rate the ledger is never the bottleneck, and the table's order may have been meant.
        keep_order = options.max_requests_per_second is not None
        look = held if looks else None
        return messages_to_send(table.spool, run.stop, options.chunk_size, keep_order=keep_order, most=most, held=look)

    def post(client: SmsClient, messages: Outgoing) -> SendResponse:
        return client.send_bulk(messages, send_options=options.send_options)

    left = prepaid(balance)
    waits = options.on_low_balance == "wait" and left is not None
    rate = options.limits.max_error_rate
    return send_messages(
        run,
        # Of what is sent again, a request may hold some.
        messages(Status.AGAIN, looks=bool(table.counts[Status.AGAIN])),
        lambda: messages(Status.AGAIN if options.plan_binds else Status.UNKNOWN, looks=True),
        post,
        held_by=held_by,
        stop_conditions=StopConditions(
            options.send_window,
            Prices(options.cost_per_part) if waits else None,
            left,
            rate if isinstance(rate, float) else None,
            # If the service did not respond just now, one request goes first.
            Caution(on=balance is None),
        ),
    )


def _count(run: Run, result: _Result, table: CheckedTable, end: End) -> End:
    """Count the rows, push summary and responses, and write the report, before anything is raised.

    :returns: the end; with an error if the rows could not be counted.
    """
    try:
        sums = add_up(run.ledger.sent_requests())
        run.ledger.require_whole()
        counts = count_rows(table.spool, table.counts, run.ledger)
        is_counted = True
    except LedgerError as error:
        log.warning("The rows are counted without the ledger, which cannot be read: %s", error)
        counts, sums = counts_of_check(table.counts), result.sums
        end = end._replace(error=graver(end.error, error))
        is_counted = False
    is_in_doubt = not is_counted or isinstance(end.error, LedgerLostError)
    result.count(counts.in_doubt() if is_in_doubt else counts, sums)
    log.info("%s", one_line(result.summary, sums.of_unknown_cost))
    push_responses(run.context, run.ledger)
    if not is_counted:  # the report is made of the same ledger
        return end
    not_sent = "the service took none of the messages of its request" if sums.none_taken else None
    result.write(not_sent if end.error is None else describe(end.error))
    return end
