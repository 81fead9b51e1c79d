"""One attempt to text a table: its ledger, check, plan, conditions, sending, summary and report, in this order."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from textwrap import indent
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InvalidRowsError
from airflow_provider_sms.execution.enter import balance_if_readable, claimant_of, enter, read_balance
from airflow_provider_sms.execution.errors import airflow_errors, describe
from airflow_provider_sms.execution.hidden import located
from airflow_provider_sms.execution.progress import one_line
from airflow_provider_sms.execution.report_file import report_path, write_report
from airflow_provider_sms.execution.send import Count, End, conclude, count_messages, send_messages
from airflow_provider_sms.execution.waits import require_balance, wait_before
from airflow_provider_sms.execution.xcom import PLAN, SUMMARY, push, push_responses
from airflow_provider_sms.formatting import by_count, counted
from airflow_provider_sms.hooks.ledger import open_ledger_if_present
from airflow_provider_sms.hooks.metrics import describe_on_assets
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.spool import Status, messages_to_send
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.changed_texts import messages_of, refuse_changed_texts
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.limits import repeats_in_words
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.reporting.row_counts import count_rows, counts_of_check
from airflow_provider_sms.reporting.summary import Sums, add_up, summarise
from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import Balance, SendResponse

log = logging.getLogger(__name__)


def text_table(task: Any, context: Context, event: Any = None) -> dict[str, Any]:
    """Make one attempt of a :class:`BulkSmsOperator`, and return its summary; after a wait it begins from the top."""
    with enter(task, context, resumed=event is not None) as run, ExitStack() as stack:
        require_balance(event)
        options = run.options
        checked = stack.enter_context(_check(task, context, options, run.ledger, run))
        table = checked.table
        try:
            options.limits.check_invalid(table.invalid, skip_invalid=options.on_invalid == "skip")
            plan = checked.plan(balance_if_readable(run.reconciliation.observe))
            run.progress.planned(plan)
            options.limits.check(plan)
            if (approved := options.approved_plan) is not None:
                approved.require(PlanId.of(plan, options.send_options), *checked.sent)
            if not plan.is_settled:
                refuse_changed_texts(messages_of(table.spool), run.ledger, run.stop)
            balance = wait_before(run, plan)
        except Exception as error:
            push_responses(context, run.ledger)
            checked.write("other rows cannot be texted" if isinstance(error, InvalidRowsError) else describe(error))
            raise
        run.progress.begin(checked.count.counts, plan.to_send)
        end = End()
        if not plan.is_settled:
            checked.push(checked.count._replace(counts=checked.count.counts.in_doubt()))  # until they are counted
            end = _send(run, table, balance, table.held_by)
        count = count_messages(run, lambda: count_rows(table.spool, table.counts, run.ledger), checked.count)
        checked.push(count)
        log.info("%s", one_line(checked.summary, count.sums.of_unknown_cost))
        push_responses(context, run.ledger)
        ended = "the service took none of the messages of its request" if count.sums.none_taken else None
        if end.error is not None:
            ended = describe(end.error)
        unwritten = checked.write(ended) if count.error is None else None  # the report is made of the same ledger
        conclude(run, end, count)
        if unwritten is not None:
            raise unwritten
    describe_on_assets(context, checked.summary)
    return checked.summary


def plan_table(task: Any, context: Context) -> dict[str, Any]:
    """Check every row, make the plan, and send nothing; this needs neither a ledger nor the service."""
    with airflow_errors(), open_ledger_if_present(task.ledger_conn_id) as store:
        options, who = task.read_options(), claimant_of(context)
        campaign = None if store is None else CampaignReader(store, options.campaign or default_name(who), who)
        with _check(task, context, options, campaign) as checked:
            plan = checked.plan(balance_if_readable(lambda: read_balance(task.hook.get_settings())))
            unwritten = checked.write("a dry run sends nothing")
            # After the plan of the other rows, so that both are seen at once.
            options.limits.check_invalid(checked.table.invalid, skip_invalid=options.on_invalid == "skip")
            options.limits.check(plan)
            are = by_count(plan.to_send, "message is", "messages are")
            log.info("Nothing is sent in a dry run: %d %s ready", plan.to_send, are)
            if unwritten is not None:
                raise unwritten
    describe_on_assets(context, checked.summary)
    return checked.summary


@dataclass
class _Checked:
    """A checked table, and what others see of it: plan, summary and row report; ``run`` is None in a dry run."""

    context: Context
    options: Any
    campaign: str
    table: CheckedTable
    report: Any
    last_request: int
    """The last request of the ledger before the rows were decided; 0 where there is none."""
    sent: tuple[int, Decimal]
    """Messages that the task has sent since the approved plan was made, and what they were to cost."""
    count: Count
    run: Run | None
    summary: dict[str, Any] = field(default_factory=dict)

    def plan(self, balance: Balance | None) -> Plan:
        """Make the plan, log it, and push it as an XCom."""
        options, invalid = self.options, self.table.invalid
        plan = self.table.plan(self.campaign, chunk_size=options.chunk_size, balance=balance)
        log.info("%s", plan.table())
        if invalid.total and options.on_invalid == "skip":
            log.warning("Left out: %s", invalid.in_words())
        if plan.repeats and options.key_columns is None:  # with key columns, another text is another matter
            log.warning("%s. max_repeats=0 refuses such a plan", repeats_in_words(plan, "and one more is in the plan"))
        plan_id = str(PlanId.of(plan, options.send_options, self.last_request))
        push(self.context, PLAN, {**plan.as_json(), "id": plan_id, "markdown": _in_markdown(plan, options)})
        return plan

    def push(self, count: Count, report: str | None = None) -> None:
        """Push the summary of a count, with the place of a report that is written."""
        self.count = count
        reconciled = 0 if self.run is None else self.run.reconciliation.reconciled
        self.summary = summarise(self.campaign, count.counts, count.sums, reconciled, report)
        if self.run is not None:
            self.run.progress.summary = self.summary
        push(self.context, SUMMARY, self.summary)

    def write(self, ended: str | None) -> Exception | None:
        """Write the report, where one is wanted, and return an error, to be raised once all else is done."""
        if self.report is None:
            return None
        error = write_report(self.report, self.table.spool, None if self.run is None else self.run.ledger, ended)
        if error is None:
            self.push(self.count, str(self.report))
        return error


@contextmanager
def _check(
    task: Any, context: Context, options: Any, campaign: CampaignReader | None, run: Run | None = None
) -> Iterator[_Checked]:
    """Check every row, also against the ledger where there is one, and push the summary."""
    source = task.get_source(context)
    report = None if options.report is None else report_path(options.report, source, options.suppress)
    composer = Composer(
        message=options.message,
        content_column=options.content_column,
        destination_column=options.destination_column,
        default_region=options.default_region,
        key_columns=options.key_columns,
    )
    opened = open_source(located(source), column=options.destination_column)
    log.info("Checking every row of %s", opened.description)
    resends, approved, sent = options.on_unknown == "resend", options.approved_plan, (0, Decimal(0))
    with closing(CheckedTable(composer, Prices(options.cost_per_part))) as table:
        table.read(opened, task.stop_signal, options.limits)
        # Before the rows are decided: what another process of the task claims meanwhile counts once.
        last = 0 if campaign is None else campaign.last_request()
        if campaign is not None and approved is not None:
            sent = campaign.sent_after(approved.last_request, resends=resends)
        table.decide(task.stop_signal, _read_suppressed(options), campaign, resends=resends)
        sums = Sums() if run is None else add_up(run.ledger.sent_requests())
        name = options.campaign or default_name(claimant_of(context))
        count = Count(counts_of_check(table.counts), sums)
        checked = _Checked(context, options, name, table, report, last, sent, count, run)
        checked.push(count)
        yield checked


def _read_suppressed(options: Any) -> SuppressedNumbers | None:
    """Read the numbers that are not texted; one that cannot be read may be a recipient's, who would be texted."""
    if options.suppress is None:
        return None
    opened = open_source(located(options.suppress, "suppress"), argument="suppress", column=options.destination_column)
    suppressed = read_suppressed(opened, options.destination_column, options.default_region)
    unreadable = suppressed.unreadable
    if unreadable.total and options.on_invalid == "fail":
        advice = (
            "Nothing was sent, since people on the list could be texted. Correct these rows, or set on_invalid='skip' "
            "to pass over them"
        )
        raise InvalidRowsError(unreadable.in_words(advice))
    if unreadable.total:
        log.warning("Passed over: %s", unreadable.in_words())
    log.info("Not texted: %s of %s", counted(len(suppressed.digits), "number"), opened.description)
    if len(suppressed.former):
        log.warning(
            "%s of suppress: too long or too short today. Taken for a former spelling, each suppresses the numbers of "
            "its country that end with the same seven digits. Look for typing errors",
            counted(len(suppressed.former), "number"),
        )
    return suppressed


def _in_markdown(plan: Plan, options: Any) -> str:
    """Return a plan for a person who has to approve it: its figures and the text's template, no number and no text.

    All of it is a block of code: Airflow's page fetches images, and turns bare URLs and e-mail addresses into links,
    even after a backslash or written with character references.
    """
    texts = ("The text", options.message) if options.message else ("The column with the texts", options.content_column)
    return indent(f"{plan.table()}\n\n{texts[0]}:\n\n{texts[1]}", "    ", lambda _: True)


def _send(run: Run, table: CheckedTable, balance: Balance | None, held_by: Collection[int]) -> End:
    options = run.options

    def messages(most: Status, *, looks: bool) -> Iterator[Outgoing]:
        # At a given rate the ledger is never the bottleneck, and the table's order may have been meant.
        keep_order = options.max_requests_per_second is not None
        free = (lambda keys: run.ledger.look(keys).are_free) if looks else None
        return messages_to_send(
            table.spool, run.stop, options.chunk_size, keep_order=keep_order, most=most, are_free=free
        )

    def post(client: SmsClient, messages: Outgoing) -> SendResponse:
        return client.send_bulk(messages, send_options=options.send_options)

    left = None if balance is None or balance.post_paid else balance.amount
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
