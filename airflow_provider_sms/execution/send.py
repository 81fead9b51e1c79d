"""One send, from the first claim to what its end means for the task: of a table, or of one text to groups."""

from __future__ import annotations

import logging
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.exceptions import LedgerError, NotSentError, ServiceError, SmsError
from airflow_provider_sms.execution.errors import FailedError, describe, is_permanent, log_unforeseen
from airflow_provider_sms.execution.waits import wait
from airflow_provider_sms.formatting import by_count, counted, join_some
from airflow_provider_sms.ledger.account import sentences
from airflow_provider_sms.ledger.requests import named_requests, unknown_requests
from airflow_provider_sms.reporting.summary import add_up
from airflow_provider_sms.sending.attempt_loop import send
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution
from airflow_provider_sms.sending.workers import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.ledger.model import TextedTwice
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.reporting.summary import Sums
    from airflow_provider_sms.sending.stop_conditions import StopConditions, StopReason
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)

MAX_SENTENCES = 3
"""Sentences about the balance that an error has; the command ``unknown`` shows all."""


class End(NamedTuple):
    """How a send ended: by an error, by an exception that Airflow raised in this thread, or with a wait ahead."""

    error: Exception | None = None
    interruption: BaseException | None = None
    stop_reason: StopReason | None = None


class Count(NamedTuple):
    """What became of the messages, and the error where the ledger could not be read."""

    counts: RowCounts
    sums: Sums
    error: LedgerError | None = None


def send_messages(
    run: Run,
    messages: Iterable[Outgoing],
    free_messages: Callable[[], Iterable[Outgoing]],
    post: Callable[[SmsClient, Outgoing], SendResponse],
    *,
    held_by: Collection[int],
    stop_conditions: StopConditions,
) -> End:
    """Send, and return once every claim has a recorded outcome.

    :param messages: the messages that were free when they were checked.
    :param free_messages: reads again which of the messages to send are free by now.
    :param held_by: requests without an outcome that held messages when these were checked.
    """
    options, reconciles = run.options, run.options.on_unknown == "reconcile"
    try:
        if reconciles or run.ledger.has_unknown():
            stop_conditions.caution = Caution(on=True, calm=CALM_RESPONSES if reconciles else 1)
        settle = Settle(run.ledger, run.reconciliation, options.on_unknown, run.stop)
        with run.settings.client(pool_size=options.concurrency) as client:

            def timed_post(some: Outgoing) -> SendResponse:
                with run.progress.timed():
                    return post(client, some)

            sender = Sender(
                run.ledger,
                timed_post,
                post_seconds=client.longest_call,
                stop=run.stop,
                concurrency=options.concurrency,
                max_requests_per_second=options.max_requests_per_second,
                reconciles=reconciles,
                ask=run.reconciliation.observe,
                stop_conditions=stop_conditions,
                holds=settle.holds,
            )
            sender.noted.update(held_by)
            run.progress.sender = sender
            try:
                interruption = run_uninterrupted(
                    lambda: send(sender, settle, messages, free_messages),
                    on_interrupt=run.stop.set,
                    heartbeat=run.progress.beat,
                )
            except BaseException:
                run.stop.set()  # whatever ended the wait, a sender that still runs must not go on claiming
                raise
        log_unforeseen(sender.error)
        if isinstance(sender.error, ServiceError):
            sender.error.place = run.settings.place()
        return End(sender.error, interruption, stop_conditions.stop_reason)
    except Exception as error:  # noqa: BLE001  # of the ledger, or no thread: the rows are counted all the same
        log_unforeseen(error)
        return End(error)


def count_messages(run: Run, count: Callable[[], RowCounts], before: Count) -> Count:
    """Return who holds the messages now; where the ledger cannot be read, what was known before the send, in doubt."""
    try:
        sums = add_up(run.ledger.sent_requests())
        run.ledger.require_whole()
        counts = count()
    except LedgerError as error:
        log.warning("The rows are counted without the ledger, which cannot be read: %s", error)
        return Count(before.counts.in_doubt(), before.sums, error)
    return Count(counts, sums)


def conclude(run: Run, end: End, count: Count) -> None:
    """Return if every message was accepted, now or before; otherwise wait or fail, once the end is on record."""
    if end.interruption is not None:
        raise end.interruption
    error = end.error or count.error
    stopped = run.stop.is_set() and bool(count.counts.not_sent)
    if error is None and not stopped and end.stop_reason is not None:
        wait(run, end.stop_reason)
    told, twice = _ask_ledger(run, error, count.counts)
    failed = failure(run, count.counts, count.sums, error, stopped=stopped, told=told, twice=twice)
    if failed is not None:
        raise failed


def _ask_ledger(run: Run, error: Exception | None, counts: RowCounts) -> tuple[Sequence[str], Sequence[TextedTwice]]:
    """Return what the balance tells of the requests without an outcome, and the messages that were texted twice."""
    if isinstance(error, LedgerError) or run.stop.is_set():
        return (), ()
    lost = set(counts.unsettled) - counts.awaited
    try:
        # A service that cannot be reached tells no balance.
        if lost and not (run.options.on_unknown == "reconcile" or isinstance(error, NotSentError)):
            run.reconciliation.show(lost)
        twice = run.ledger.texted_twice()
        for each in twice:
            log.error("Request %d was accepted after others could claim its messages: %s", each.request_id, each)
        unknown = unknown_requests(run.store, run.campaign, run.who)
        if gone := sum(each.messages for each in unknown if each.request_id not in counts.unsettled):
            words = "%s may have been sent earlier by this task, without a row to send by now: see airflow-sms unknown"
            log.warning(words, counted(gone, "message"))
        return sentences(each.evidence for each in named_requests(run.store, lost)), twice
    except SmsError as unreadable:
        log.warning("The ledger does not tell more of the requests without an outcome: %s", unreadable)
        return (), ()


def failure(
    run: Run,
    counts: RowCounts,
    sums: Sums,
    error: Exception | None,
    *,
    stopped: bool,
    told: Sequence[str] = (),
    twice: Sequence[TextedTwice] = (),
) -> FailedError | None:
    """Return why a task fails; None if every message that has to be accepted was accepted, now or before."""
    lost = {each: count for each, count in counts.unsettled.items() if each not in counts.awaited}
    awaited = {each: count for each, count in counts.unsettled.items() if each in counts.awaited}
    again = counts.unknown - sum(counts.unsettled.values())
    resends = run.options.on_unknown == "resend"
    refused = min(sums.none_taken, counts.not_sent)  # some may have been refused twice
    words: list[str] = []
    if lost:
        again_at_risk = "The next attempt sends these again, at the risk of texting people twice"
        words.append(
            f"{_held(lost)} may have been sent: the service's response was lost, or the sending process ended. "
            f"{''.join(f'{each} ' for each in told[:MAX_SENTENCES])}{again_at_risk if resends else _to_do(run, lost)}"
        )
    if again:  # of superseded requests, or of any where the ledger could not be read
        then = "" if error is not None else ". The next attempt sends these again"
        words.append(f"{counted(again, 'message')} may have been sent{then}")
    if awaited:
        words.append(
            f"{_held(awaited)} may have been sent: claimed by another process that has recorded no outcome. The next "
            "attempt finds the outcome, or treats requests without one by then as unknown"
        )
    if refused:
        reasons = ", ".join(f"{name} {count}" for name, count in sums.error_report.items() if count)
        words.append(
            f"{counted(refused, 'message')} not sent, since the service took nothing of a request "
            f"({reasons or 'it gave no reason'} in its error reports). Clearing the task sends these again, which "
            "helps only once the reason is gone"
        )
    if twice:
        named = "; ".join(f"request {each.request_id}, {each}" for each in twice)
        words.append(f"the service accepted requests whose messages others had claimed meanwhile: {named}")
    if not (words or error or stopped) and counts.not_sent:
        words.append(
            f"another process gave back {counted(counts.not_sent, 'message')} that it held. The next attempt sends the "
            "rest"
        )
    words = [f"Campaign {run.campaign}: {each}" for each in words]
    needs_person = bool((lost and not resends) or refused or twice)
    if error is not None:
        words.insert(0, f"Sending ended early: {describe(error)}")
        needs_person = is_permanent(error)
    elif stopped:
        rest = "the requests in flight are recorded, and the next attempt sends the rest"
        words.insert(0, f"Sending was stopped; {rest}")
        needs_person = False
    return FailedError(". ".join(words), transient=not needs_person) if words else None


def _held(unsettled: Mapping[int, int]) -> str:
    """Return how many messages which requests hold; many ids would make a line that nobody reads."""
    requests, ids = by_count(len(unsettled), "request"), join_some([str(each) for each in sorted(unsettled)])
    return f"{counted(sum(unsettled.values()), 'message')} in the ledger's {requests} {ids}"


def _to_do(run: Run, lost: Mapping[int, int]) -> str:
    ledger = run.task.ledger_conn_id
    there = f" --ledger-conn-id {quote(ledger)}" if ledger else ""
    proved = ". on_unknown='reconcile' closes the requests whose outcome the balance shows"
    return (
        f"{by_count(sum(lost.values()), 'It is', 'They are')} not sent again. A person decides: with airflow-sms "
        f"unknown --campaign={quote(run.campaign)} --read-balance{there}, then airflow-sms resolve{there}; or on the "
        "campaign's page, under SMS in Airflow's navigation. Then clear this task"
        f"{'' if run.options.on_unknown == 'reconcile' else proved}"
    )
