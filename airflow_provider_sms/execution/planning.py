"""The check of every row of a table before the first request, and the plan made from it."""

from __future__ import annotations

import logging
import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InvalidRowsError, LedgerError
from airflow_provider_sms.execution.redaction import located
from airflow_provider_sms.execution.xcom import PLAN, push
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.request_queries import last_request
from airflow_provider_sms.ledger.statistics import seconds_per_request
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.approved_plan import PlanId
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.limits import REPEATS_ADVICE, repeats_in_words
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.options import BulkOptions
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except the tab, and characters that override, embed or isolate the direction of writing."""


@contextmanager
def read_table(source: Any, options: BulkOptions, stop: StopFlag) -> Iterator[CheckedTable]:
    """Read and compose every row of a source; none is decided yet.

    :param source: the recipients, as the operator takes them.
    """
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
        table.read(opened, stop, options.limits)
        yield table


def decide_rows(table: CheckedTable, options: BulkOptions, stop: StopFlag, preview: CampaignPreview | None) -> None:
    """Set the status of each row.

    :param preview: the campaign as the ledger knows it; None where there is none.
    """
    table.decide(stop, None if options.suppress is None else _read_suppressed(options), preview)


def require_sendable(table: CheckedTable, options: BulkOptions) -> None:
    """Refuse a table with rows that cannot be texted, as far as the options do not allow them."""
    options.limits.check_invalid(table.invalid, skip_invalid=options.on_invalid == "skip")
    if table.invalid.total:
        log.warning("Left out: %s", table.invalid.in_words())


def plan_send(
    context: Context,
    campaign: str,
    table: CheckedTable,
    options: BulkOptions,
    *,
    store: LedgerBackend | None,
    balance: Balance | None,
) -> Plan:
    """Make the plan of a checked table, log it, and push it as an XCom.

    :param store: tells the pace of earlier sends; None where it cannot be read.
    :param balance: the balance now; None if it was not read.
    """
    seconds = _seconds_per_request(options, store)
    plan = table.plan(campaign, chunk_size=options.chunk_size, balance=balance, seconds_per_request=seconds)
    log.info("%s", plan.table())
    if plan.repeats and options.key_columns is None:  # with key columns, another text is another matter
        words = repeats_in_words(plan.repeats, campaign)
        log.warning("%s, and one more is in the plan. %s. max_repeats=0 refuses such a plan", words, REPEATS_ADVICE)
    plan_id = str(PlanId.of(plan, options.send_options, 0 if store is None else last_request(store)))
    push(context, PLAN, {**plan.as_json(), "id": plan_id, "markdown": plan_in_markdown(plan, options)})
    return plan


def plan_in_markdown(plan: Plan, options: BulkOptions) -> str:
    """Return a plan for a person who has to approve it: its figures and the text's template, no number and no text."""
    texts = ("The text", options.message) if options.message else ("The column with the texts", options.content_column)
    return "\n".join([*block(plan.table()), "", f"{texts[0]}:", "", *block(str(texts[1]))])


def block(text: str) -> list[str]:
    """Return the lines of a block of code in Markdown, which has to stand between empty lines.

    Airflow's page fetches images, and turns bare URLs and e-mail addresses into links, even after a backslash or
    written with character references: only code is left alone. A character that could make the text around it read
    differently becomes a replacement character; tabs stay, and so do the joiners of emoji.
    """
    return [f"    {_CONTROL.sub(REPLACEMENT, line)}" for line in text.splitlines()]


def _read_suppressed(options: BulkOptions) -> SuppressedNumbers:
    """Read the numbers that are not texted; one that cannot be read may be a recipient's, who would be texted."""
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


def _seconds_per_request(options: BulkOptions, store: LedgerBackend | None) -> float | None:
    if options.max_requests_per_second is not None:
        return 1 / options.max_requests_per_second
    try:
        each = None if store is None else seconds_per_request(store)
    except LedgerError:
        return None
    return None if each is None else each / options.concurrency
