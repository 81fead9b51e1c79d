"""One try to text a table: its check, its sending, its summary and its report."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sms.exceptions import LedgerError, SmsError
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.messages.sources import open_source
from airflow_provider_sms.operators.campaign import responses_of
from airflow_provider_sms.operators.entry import entered
from airflow_provider_sms.operators.failures import describe
from airflow_provider_sms.operators.report_path import refuse_report_in_source, report_path
from airflow_provider_sms.operators.rows import located
from airflow_provider_sms.sending.decisions import to_resend
from airflow_provider_sms.sending.earlier import TableKeys
from airflow_provider_sms.sending.options import SendingOptions
from airflow_provider_sms.sending.report import continued, one_line, summarise
from airflow_provider_sms.sending.row_report import whole_file, write_row_report
from airflow_provider_sms.sending.table import CheckedTable, check_table, outgoing_blocks, require_sendable
from airflow_provider_sms.sending.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.messages.sources import Source
    from airflow_provider_sms.operators.bulk import BulkSmsOperator
    from airflow_provider_sms.operators.entry import Entry
    from airflow_provider_sms.sending.blocks import Block, Outgoing
    from airflow_provider_sms.sending.ledger import CampaignLedger
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse


class BulkTry:
    """One try of a :class:`BulkSmsOperator`, or the part of it that comes after an answer.

    :param task: whose arguments are rendered.
    :param event: what a person answered; None where nothing was asked.
    """

    def __init__(self, task: BulkSmsOperator, context: Context, event: Mapping[str, Any] | None) -> None:
        self._task = task
        self._context = context
        self._event = event
        self._before = None if event is None else self._summary_so_far()
        self._table = CheckedTable()
        self._tally = Tally()
        self._keys: TableKeys | None = None
        self._source: Source | None = None
        self._preparation: Preparation | None = None
        self._report_path: Any = None
        self._report: str | None = None
        self._report_error: Exception | None = None

    def run(self) -> dict[str, Any]:
        """Check every row, send, and give the summary; it is pushed when this raises, too."""
        task = self._task
        try:
            if task.dry_run_only:
                self._read_arguments()
                self._check(None)
                self._write_report(None, "a dry run sends nothing", nothing_sent=True)
                task.log.info("Nothing is sent in a dry run: %d messages are ready", self._valid)
            else:
                self._enter_and_send()
        except Exception:
            task.push(self._context, "return_value", self._summary())
            raise
        if self._report_error is not None:
            raise AirflowException(
                f"The report could not be written to {task.report}: {describe(self._report_error)}. All else is done: "
                "the next try texts nobody twice, and writes it"
            )
        return self._summary()

    def _read_arguments(self) -> None:
        task = self._task
        task.check_arguments()
        self._tally.max_event_ids = task.max_xcom_responses
        if task.report is not None:
            self._report_path = report_path(task.report)

    def _enter_and_send(self) -> None:
        with ExitStack() as stack:
            try:
                # Before anything else can fail: the next try looks for the trace of this one.
                entry = stack.enter_context(
                    entered(self._context, self._task.ledger_conn_id, resumed=self._event is not None)
                )
            except SmsError:
                # For the counts; and what is wrong with the table is to be mended first.
                self._read_arguments()
                self._report_path = None  # without a ledger there is nothing true to report
                self._check(None)
                raise
            self._read_arguments()
            settings = self._task.get_settings()
            if self._event is not None:
                self._task.take_answer(entry, self._event)
            self._check(entry)
            self._send(entry, settings)

    @property
    def _valid(self) -> int:
        return self._table.rows - self._table.invalid

    def _check(self, entry: Entry | None) -> None:
        """Look at every row, and refuse a table that must not be sent."""
        task = self._task
        self._preparation = Preparation(
            message=task.message,
            content_column=task.content_column,
            destination_column=task.destination_column,
            default_region=task.default_region,
            key_columns=task.key_columns,
        )
        source = task.get_source(self._context)
        if self._report_path is not None:
            refuse_report_in_source(self._report_path, source)
        self._source = open_source(located(source))
        if entry is not None and self._has_claims(entry):
            # A later try compares the table with what was claimed: so it is not read once more for that.
            self._keys = TableKeys()
        task.log.info("Checking every row of %s", self._source.describe())
        check_table(self._source, self._preparation, self._table, task.stop_signal, self._keys)
        try:
            require_sendable(self._table, skip_invalid=task.on_invalid == "skip")
        except SmsError:
            ledger = None if entry is None else self._ledger(entry)
            self._write_report(ledger, "other rows cannot be texted, so nothing was sent", nothing_sent=True)
            raise
        if self._table.invalid:
            task.log.warning("Left out: %s", self._table.explain())

    def _send(self, entry: Entry, settings: ClientSettings) -> None:
        task = self._task

        def post(client: SmsClient, messages: Sequence[Outgoing]) -> SendResponse:
            pairs = [{"Content": m.content, "Destination": str(m.destination)} for m in messages]
            return client.send_bulk(pairs, send_options=task.send_options)

        task.deliver(
            self._context,
            entry,
            settings,
            self._blocks,
            post,
            total=self._valid,
            options=SendingOptions(
                chunk_size=task.chunk_size,
                concurrency=task.concurrency,
                max_requests_per_second=task.max_requests_per_second,
                resend_unknown=task.on_unknown == "resend",
                resend_requests=to_resend(entry.store, task.campaign_name(self._context), entry.who),
            ),
            kind="bulk",
            tally=self._tally,
            finish=self._finish,
            keys=self._keys,
        )

    def _has_claims(self, entry: Entry) -> bool:
        """Say whether an earlier try claimed anything; False where the ledger does not say.

        Rows are checked and counted all the same; whoever sends meets the error again.
        """
        try:
            return self._ledger(entry).earlier().any()
        except LedgerError:
            return False

    def _ledger(self, entry: Entry) -> CampaignLedger:
        return entry.campaign(self._task.campaign_name(self._context), "bulk")

    def _blocks(self) -> Iterator[Block]:
        source, preparation = self._opened()
        task = self._task
        # At a given rate the ledger is never what takes the time, and the table's order may have been meant.
        keep_order = task.max_requests_per_second is not None
        return outgoing_blocks(source, preparation, self._table, task.stop_signal, keep_order=keep_order)

    def _opened(self) -> tuple[Source, Preparation]:
        if self._source is None or self._preparation is None:
            raise RuntimeError("the table is read before it is opened")
        return self._source, self._preparation

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
            self._write_report(ledger, None if error is None else describe(error))
            task.push(self._context, "return_value", self._summary())

    def _write_report(self, ledger: CampaignLedger | None, ended: str | None, *, nothing_sent: bool = False) -> None:
        """Write the row-level report, where one is wanted; what goes wrong is remembered, since all else is done."""
        task = self._task
        if self._report_path is None:
            return
        source, preparation = self._opened()
        try:
            with whole_file(self._report_path) as file:
                write_row_report(
                    file,
                    source,
                    preparation,
                    seen=self._tally.seen,
                    ledger=ledger,
                    ended=ended,
                    nothing_sent=nothing_sent,
                )
        except Exception as error:  # noqa: BLE001  # storage can fail in any way
            self._report_error = error
            task.log_unforeseen(error)
            task.log.error("The report could not be written to %s: %s", task.report, describe(error))  # noqa: TRY400
        else:
            self._report = str(self._report_path)
            task.log.info("Wrote what became of each row to %s", self._report)

    def _summary(self) -> dict[str, Any]:
        campaign = self._task.campaign_name(self._context)
        now = summarise(campaign, self._table.rows, self._table.invalid, self._tally)
        summary = continued(self._before, now, self._tally.max_event_ids)
        return {**summary, "report": self._report or summary["report"]}

    def _summary_so_far(self) -> dict[str, Any] | None:
        """Give the summary that this try pushed before it asked; None where it pushes no XComs."""
        ti = self._context["ti"]
        found = ti.xcom_pull(task_ids=self._task.task_id, key="return_value", map_indexes=ti.map_index)
        return found if isinstance(found, dict) else None
