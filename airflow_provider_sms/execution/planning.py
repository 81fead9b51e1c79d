"""The check of every row of a table before the first request, and the plan made from it."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InvalidRowsError, LedgerError
from airflow_provider_sms.execution.ledger_session import claimant_of
from airflow_provider_sms.execution.markdown import block, cell, code
from airflow_provider_sms.execution.redaction import located
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.ledger.statistics import seconds_per_request
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.plan import make_plan
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.options import BulkOptions
    from airflow_provider_sms.execution.progress import Progress
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)


class TableCheck:
    """The check of a source before the first request.

    :param read_source: returns the recipients, as the operator takes them.
    :param stack: closes the files of the check once the attempt has ended.
    :raises InputError: an argument is wrong, or the source cannot be opened.
    """

    def __init__(self, options: BulkOptions, read_source: Callable[[], Any], stack: ExitStack) -> None:
        composer = Composer(
            message=options.message,
            content_column=options.content_column,
            destination_column=options.destination_column,
            default_region=options.default_region,
            key_columns=options.key_columns,
        )
        self.prices = Prices(options.cost_per_part)
        self._options = options
        self._source = open_source(located(read_source()), column=options.destination_column)
        self._suppressed = None if options.suppress is None else _read_suppressed(options)
        self.table = stack.enter_context(closing(CheckedTable(composer, self.prices)))
        """The table, as far as it was checked."""
        self.held_by: set[int] = set()
        """Requests without an outcome that hold messages of the table."""

    def run(self, stop: StopFlag, progress: Progress, look: Callable[[], CampaignPreview | None]) -> None:
        """Check every row; if an error ends this, the table keeps what was found.

        :param look: returns the campaign as the ledger knows it; None where the ledger is not asked.
        :raises InputError: the source cannot be read, or has too many or too few rows.
        :raises StoppedError: the task was told to stop.
        :raises LedgerError: the ledger cannot be read, so nobody knows which of the rows were sent before.
        """
        log.info("Checking every row of %s", self._source.description)
        progress.note(AttemptState.CHECKING)
        self.table.read(self._source, stop, self._options.limits.check_rows)
        self._options.limits.check_enough(self.table.rows)
        try:
            preview = look()
            self.table.decide(stop, self._suppressed, preview)
            self.held_by = set() if preview is None else preview.held_by
        except LedgerError:
            self.require_sendable()  # an error in the rows should be reported first
            raise

    def require_sendable(self) -> None:
        """Refuse a table with rows that cannot be texted, as far as the options do not allow them.

        :raises InvalidRowsError: says how many, why and which.
        """
        self._options.limits.check_invalid(self.table)
        self.table.require_sendable(skip_invalid=self._options.on_invalid == "skip")
        if self.table.invalid.total:
            log.warning("Left out: %s", self.table.explain_invalid())


def plan_send(
    table: CheckedTable,
    options: BulkOptions,
    *,
    campaign: str,
    store: LedgerBackend | None,
    balance: Balance | None,
) -> Plan:
    """Return the plan of a checked table.

    :param store: tells the pace of earlier sends; None where it cannot be read.
    :param balance: the balance now; None if it was not read.
    """
    return make_plan(
        campaign,
        table,
        chunk_size=options.chunk_size,
        balance=balance,
        seconds_per_request=_seconds_per_request(options, store),
    )


def plan_in_markdown(plan: Plan, options: BulkOptions) -> str:
    """Return a plan for a person who has to approve it: its figures and the text's template, no number and no text."""
    lines = [f"Campaign {code(plan.campaign)}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {cell(value)} |" for name, value in plan.lines()]
    if options.message is None:
        return "\n".join([*lines, "", f"The texts are in column {code(str(options.content_column))}."])
    return "\n".join([*lines, "", "The text:", "", *block(options.message)])


PER_RUN = "one per DAG run: name it to text each person once, ever"
"""What the default campaign means."""
_LATE = timedelta(days=1)


def several_runs_in_words(context: Context, campaign: str) -> str | None:
    """Return a warning if other runs may text the same people, each in its own default campaign; None otherwise.

    A run is one of several in a backfill, and in a catch-up: on schedule, after the next run was due, and a day late.
    """
    run, dag = context.get("dag_run"), context.get("dag")
    if run is None or campaign != default_name(claimant_of(context)):
        return None
    start, end = getattr(run, "data_interval_start", None), getattr(run, "data_interval_end", None)
    late = start is not None and end is not None and datetime.now(timezone.utc) - end > max(end - start, _LATE)
    catches_up = run.run_type == "scheduled" and getattr(dag, "catchup", False) and late
    if not (catches_up or run.run_type == "backfill"):
        return None
    kind = "catch-up" if catches_up else "backfill"
    return (
        f"This run is part of a {kind}, and the campaign is the default, {PER_RUN}. Each of its runs texts the same "
        "people again"
    )


def _read_suppressed(options: BulkOptions) -> SuppressedNumbers:
    """Read the numbers that are not texted.

    :raises InvalidRowsError: a number cannot be read: it may be that of a recipient, who would be texted.
    """
    opened = open_source(located(options.suppress, "suppress"), argument="suppress", column=options.destination_column)
    suppressed = read_suppressed(opened, options.destination_column, options.default_region)
    if suppressed.unreadable.total and options.on_invalid == "fail":
        raise InvalidRowsError(
            suppressed.explain(
                "Nothing was sent, since people on the list could be texted. Correct these rows, or set "
                "on_invalid='skip' to pass over them"
            )
        )
    if suppressed.unreadable.total:
        log.warning("Passed over: %s", suppressed.explain())
    count, are = suppressed.numbers, by_count(suppressed.numbers, "is", "are")
    log.info("%d %s of %s %s not texted", count, by_count(count, "number"), opened.description, are)
    if former := len(suppressed.former):
        log.warning(
            "%d %s a number that is too long or too short today. Taken for a former spelling, it suppresses the "
            "numbers of its country that end with the same seven digits. Look for typing errors",
            former,
            by_count(former, "row of suppress has", "rows of suppress have"),
        )
    return suppressed


def _seconds_per_request(options: BulkOptions, store: LedgerBackend | None) -> float | None:
    if options.max_requests_per_second is not None:
        return 1 / options.max_requests_per_second
    try:
        each = None if store is None else seconds_per_request(store)
    except LedgerError:
        return None
    return None if each is None else each / options.concurrency
