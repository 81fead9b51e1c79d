"""The look at every row of a table, and the plan that comes of it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InvalidRowsError, LedgerError
from airflow_provider_sms.execution.redaction import located
from airflow_provider_sms.execution.report_file import refuse_report_in_source
from airflow_provider_sms.execution.tracing import span
from airflow_provider_sms.ledger.preview import CampaignPreview
from airflow_provider_sms.ledger.statistics import seconds_per_request
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning.plan import make_plan
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import CheckedTable, Scan, check_table, require_sendable
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.telemetry import Telemetry
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.operators.bulk import BulkSmsOperator
    from airflow_provider_sms.planning.changed_texts import TableKeys
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.recipients.sources import Source
    from airflow_provider_sms.service.responses import Balance

XCOM = "plan"


class PlanStep:
    """Checks the table of a :class:`BulkSmsOperator`, and plans its sending.

    :param task: whose arguments are rendered.
    :param watch: tells others how it goes.
    """

    def __init__(self, task: BulkSmsOperator, context: Context, watch: Telemetry) -> None:
        self.table = CheckedTable()
        self.is_checked = False
        """Whether every row has been looked at."""
        self.suppressed: SuppressedNumbers | None = None
        self.prices = Prices()
        self._task = task
        self._context = context
        self._watch = watch
        self._survey: Scan | None = None
        self._source: Source | None = None
        self._preparation: Preparation | None = None
        self._open = ExitStack()

    @property
    def valid(self) -> int:
        """Rows that can be texted."""
        return self.table.rows - self.table.invalid

    @property
    def keys(self) -> TableKeys | None:
        """The messages of the table; None before the check."""
        return None if self._survey is None else self._survey.keys

    @property
    def samples(self) -> Sequence[tuple[str, str]]:
        """The destinations and texts of the first messages that are to be sent."""
        return () if self._survey is None else self._survey.samples

    def opened(self) -> tuple[Source, Preparation]:
        """Give the table, and how its rows become messages."""
        if self._source is None or self._preparation is None:
            raise RuntimeError("the table is read before it is opened")
        return self._source, self._preparation

    def close(self) -> None:
        """Give back what was needed to look at the rows."""
        self._open.close()

    def check(self, store: LedgerBackend | None, report: Any, resends: Callable[[int], bool]) -> None:
        """Look at every row, and refuse a table that must not be sent.

        :param store: the ledger; None where it cannot be asked, or need not be.
        :param report: the path of the report to be written; None: there is none.
        :param resends: says of an unknown request whether its messages are sent again.
        :raises InputError: says what is wrong.
        """
        task = self._task
        preparation = self._preparation = Preparation(
            message=task.message,
            content_column=task.content_column,
            destination_column=task.destination_column,
            default_region=task.default_region,
            key_columns=task.key_columns,
        )
        self.prices = Prices(task.cost_per_part)
        source = task.get_source(self._context)
        if report is not None:
            refuse_report_in_source(report, source)
        opened = self._source = open_source(located(source))
        if task.suppress is not None:
            self.suppressed = self._open.enter_context(self._read_suppressed())
        look = None if store is None else self._look(store, resends)
        survey = self._survey = Scan(self.prices, self.suppressed, look, keyed_by_text=task.key_columns is None)
        self._open.callback(survey.close)
        task.log.info("Checking every row of %s", opened.describe())
        self._watch.note("checking", {})
        with span("sms.check") as figures:
            check_table(opened, preparation, self.table, task.stop_signal, survey=survey, limits=task.limits)
            figures.update(rows=self.table.rows, invalid=self.table.invalid)
        self.is_checked = True
        task.limits.check_invalid(self.table)
        require_sendable(self.table, skip_invalid=task.on_invalid == "skip")
        if self.table.invalid:
            task.log.warning("Left out: %s", self.table.explain())

    def make(self, store: LedgerBackend | None, balance: Balance | None) -> Plan:
        """Make the plan, log it, and push it as an XCom.

        :param balance: now; None where nobody asked.
        :raises LimitError: it is beyond a limit.
        """
        task = self._task
        if self._survey is None:
            raise RuntimeError("the plan is made before the check")
        plan = make_plan(
            task.campaign_name(self._context),
            self.table,
            self._survey,
            chunk_size=task.chunk_size,
            balance=balance,
            seconds_per_request=self._seconds_per_request(store),
        )
        task.log.info("%s", plan.table())
        task.push(self._context, XCOM, plan.as_json())
        self._watch.planned(plan)
        task.limits.check(plan)
        return plan

    def _look(self, store: LedgerBackend, resends: Callable[[int], bool]) -> CampaignPreview | None:
        """Give a look at the campaign, where there is something to see.

        Rows are checked and counted all the same where there is none; whoever sends meets the error again.
        """
        task = self._task
        try:
            look = CampaignPreview(store, task.campaign_name(self._context), task.frequency_cap, resends)
        except LedgerError:
            return None
        return look if look.any or look.caps else None

    def _read_suppressed(self) -> SuppressedNumbers:
        """Read the numbers that are not to be texted.

        :raises InvalidRowsError: some of them are no numbers: somebody may be meant whom this would text.
        """
        task = self._task
        opened = open_source(located(task.suppress, "suppress"))
        listed = read_suppressed(opened, task.destination_column, task.default_region)
        if listed.unreadable and task.on_invalid == "fail":
            listed.close()
            raise InvalidRowsError(
                f"{listed.explain()}. Nothing was sent, since whoever is meant could be texted. Mend them, "
                "or set on_invalid='skip' to pass over them"
            )
        if listed.unreadable:
            task.log.warning("Passed over: %s", listed.explain())
        task.log.info("%d numbers of %s are not texted", listed.numbers, opened.describe())
        return listed

    def _seconds_per_request(self, store: LedgerBackend | None) -> float | None:
        task = self._task
        if task.max_requests_per_second is not None:
            return 1 / task.max_requests_per_second
        try:
            each = None if store is None else seconds_per_request(store)
        except LedgerError:
            return None
        return None if each is None else each / task.concurrency
