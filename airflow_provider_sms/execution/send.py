"""One send, from the first claim to what its end means for the task: of a table, or of one text to groups."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.exceptions import LedgerError, NotSentError, ServiceError, SmsError
from airflow_provider_sms.execution.errors import Unsettled, failure, log_unforeseen
from airflow_provider_sms.execution.waits import wait
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.request_queries import named_requests, unknown_requests
from airflow_provider_sms.sending.attempt_loop import send
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution
from airflow_provider_sms.sending.workers import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.reporting.summary import Sums
    from airflow_provider_sms.sending.stop_conditions import StopConditions, StopReason
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


class End(NamedTuple):
    """How a send ended.

    :param error: the error that ended it early; None where nothing failed.
    :param interruption: an exception that Airflow raised in this thread, for raising it again; None if there is none.
    :param stop_reason: the condition that the rest waits for; None if it waits for none.
    :param has_posted: whether anything was posted.
    """

    error: Exception | None = None
    interruption: BaseException | None = None
    stop_reason: StopReason | None = None
    has_posted: bool = False


def send_messages(
    run: Run[Any],
    messages: Iterable[Outgoing],
    free_messages: Callable[[], Iterable[Outgoing]],
    post: Callable[[SmsClient, Sequence[Outgoing]], SendResponse],
    *,
    held_by: Collection[int],
    stop_conditions: StopConditions,
) -> End:
    """Send, and return once every claim has a recorded outcome.

    :param messages: the messages that were free when they were checked.
    :param free_messages: reads again which of the messages to send are free by now.
    :param post: posts one request.
    :param held_by: requests without an outcome that held messages when these were checked.
    """
    try:
        options = run.options
        if options.on_unknown == "reconcile":
            stop_conditions.caution = Caution(on=True, calm=CALM_RESPONSES)
        elif run.ledger.has_unknown():
            stop_conditions.caution = Caution(on=True)
        settle = Settle(run.ledger, run.reconciliation, options.on_unknown, run.stop)
        with run.settings.client(pool_size=options.concurrency) as client:
            sender = Sender(
                run.ledger,
                run.progress.timed(lambda some: post(client, some)),
                post_seconds=client.longest_call,
                stop=run.stop,
                concurrency=options.concurrency,
                max_requests_per_second=options.max_requests_per_second,
                reconciles=options.on_unknown == "reconcile",
                ask=run.reconciliation.observe,
                stop_conditions=stop_conditions,
                holds=settle.holds,
            )
            sender.noted.update(held_by)
            run.progress.sends(sender)
            try:
                interruption = run_uninterrupted(
                    lambda: send(sender, settle, messages, free_messages, options.chunk_size),
                    on_interrupt=run.stop.set,
                    heartbeat=run.progress.beat,
                )
            except BaseException:
                # Whatever ended the wait, a sender that still runs must not go on claiming.
                run.stop.set()
                raise
        log_unforeseen(sender.error)
        if isinstance(sender.error, ServiceError):
            sender.error.place = run.settings.place()
        return End(sender.error, interruption, stop_conditions.stop_reason, sender.has_posted)
    except Exception as error:  # noqa: BLE001  # of the ledger, or no thread: the rows are counted all the same
        log_unforeseen(error)
        return End(error, has_posted=True)


def conclude(run: Run[Any], end: End, counts: RowCounts, sums: Sums) -> None:
    """Return if every message was accepted, now or before; otherwise wait or fail, once the end is on record.

    :raises FailedError: says what is not accepted, and why.
    """
    if end.interruption is not None:
        raise end.interruption
    stopped = run.stop.is_set() and bool(counts.not_sent)
    if end.error is None and not stopped and end.stop_reason is not None:
        wait(run, end.stop_reason)
    failed = failure(
        run.campaign,
        counts,
        sums,
        _unsettled(run, end, counts),
        end.error,
        stopped=stopped,
        on_unknown=run.options.on_unknown,
        ledger_conn_id=run.task.ledger_conn_id,
    )
    if failed is not None:
        raise failed


def _unsettled(run: Run[Any], end: End, counts: RowCounts) -> Unsettled:
    """Return what the ledger tells of the requests without an outcome, and of messages that were texted twice."""
    if isinstance(end.error, LedgerError) or run.stop.is_set():
        return Unsettled()
    lost = set(counts.unsettled) - counts.awaited
    try:
        # A service that cannot be reached tells no balance.
        if lost and not (run.options.on_unknown == "reconcile" or isinstance(end.error, NotSentError)):
            run.reconciliation.show(lost)
        twice = run.ledger.texted_twice()
        for each in twice:
            log.error("Request %d was accepted after others could claim its messages: %s", each.request_id, each)
        _say_gone(run, counts)
        return Unsettled(named_requests(run.store, lost), named_requests(run.store, counts.awaited), twice)
    except SmsError as error:
        log.warning("The ledger does not tell more of the requests without an outcome: %s", error)
        return Unsettled()


def _say_gone(run: Run[Any], counts: RowCounts) -> None:
    """Log the unknown requests of this task instance of which no row is left: they are in no count."""
    mine = unknown_requests(run.store, run.campaign, run.who)
    if gone := sum(each.messages for each in mine if each.request_id not in counts.unsettled):
        log.warning(
            "%d %s may have been sent earlier by this task, and %s no row to send in the source any more: see "
            "airflow-sms unknown",
            gone,
            by_count(gone, "message", "messages"),
            by_count(gone, "has", "have"),
        )
