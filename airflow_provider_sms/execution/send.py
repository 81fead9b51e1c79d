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
from airflow_provider_sms.sending.attempt_loop import send
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution
from airflow_provider_sms.sending.workers import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from airflow_provider_sms.execution.enter import Run
    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.model import TextedTwice
    from airflow_provider_sms.ledger.requests import RequestRow
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
    """How a send ended.

    :param error: the error that ended it early; None where nothing failed.
    :param interruption: an exception that Airflow raised in this thread, for raising it again; None if there is none.
    :param stop_reason: the condition that the rest waits for; None if it waits for none.
    """

    error: Exception | None = None
    interruption: BaseException | None = None
    stop_reason: StopReason | None = None


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
                    lambda: send(sender, settle, messages, free_messages),
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
        return End(sender.error, interruption, stop_conditions.stop_reason)
    except Exception as error:  # noqa: BLE001  # of the ledger, or no thread: the rows are counted all the same
        log_unforeseen(error)
        return End(error)


def conclude(run: Run, end: End, counts: RowCounts, sums: Sums) -> None:
    """Return if every message was accepted, now or before; otherwise wait or fail, once the end is on record.

    :raises FailedError: says what is not accepted, and why.
    """
    if end.interruption is not None:
        raise end.interruption
    stopped = run.stop.is_set() and bool(counts.not_sent)
    if end.error is None and not stopped and end.stop_reason is not None:
        wait(run, end.stop_reason)
    lost, twice = _unsettled(run, end, counts)
    failed = failure(run, counts, sums, end.error, stopped=stopped, lost_requests=lost, twice=twice)
    if failed is not None:
        raise failed


def _unsettled(run: Run, end: End, counts: RowCounts) -> tuple[Sequence[RequestRow], Sequence[TextedTwice]]:
    """Return what the ledger tells of the requests without an outcome, and of messages that were texted twice."""
    if isinstance(end.error, LedgerError) or run.stop.is_set():
        return (), ()
    lost = set(counts.unsettled) - counts.awaited
    try:
        # A service that cannot be reached tells no balance.
        if lost and not (run.options.on_unknown == "reconcile" or isinstance(end.error, NotSentError)):
            run.reconciliation.show(lost)
        twice = run.ledger.texted_twice()
        for each in twice:
            log.error("Request %d was accepted after others could claim its messages: %s", each.request_id, each)
        _say_gone(run, counts)
        return named_requests(run.store, lost), twice
    except SmsError as error:
        log.warning("The ledger does not tell more of the requests without an outcome: %s", error)
        return (), ()


def _say_gone(run: Run, counts: RowCounts) -> None:
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


def failure(
    run: Run,
    counts: RowCounts,
    sums: Sums,
    error: Exception | None,
    *,
    stopped: bool,
    lost_requests: Sequence[RequestRow] = (),
    twice: Sequence[TextedTwice] = (),
) -> FailedError | None:
    """Return why a task fails; None if every message that has to be accepted was accepted, now or before.

    :param error: the error that ended the sending early; None where nothing failed.
    :param stopped: whether the task was told to stop.
    :param lost_requests: those whose outcome is unknown; empty where the ledger cannot be read.
    :param twice: messages that were texted twice, or may have been; empty as well.
    """
    on_unknown = run.options.on_unknown
    awaited = sum(counts.unsettled[each] for each in counts.awaited)
    held = sum(counts.unsettled.values())
    lost, again, resends = held - awaited, counts.unknown - held, on_unknown == "resend"
    words: list[str] = []
    if lost:
        told = _told(each.evidence for each in lost_requests)
        then = (
            f"The next attempt sends {by_count(lost, 'it', 'them')} again, at the risk of texting people twice"
            if resends
            else _what_to_do(run, lost)
        )
        ids = set(counts.unsettled) - counts.awaited
        words.append(
            f"{counted(lost, 'message')} in the ledger's {by_count(len(ids), 'request')} {_some_of(ids)}"
            f" may have been sent: the service's response was lost, or the sending process ended. {told}{then}"
        )
    if again:  # of superseded requests, or of any where the ledger could not be read
        then = "" if error is not None else f". The next attempt sends {by_count(again, 'it', 'them')} again"
        words.append(f"{counted(again, 'message')} may have been sent{then}")
    if awaited:
        words.append(_awaited(awaited, counts.awaited))
    may_pass = stopped or (lost and resends) or ((awaited or again) and not lost)
    if sums.none_taken and counts.not_sent:
        words.append(_none_taken(min(sums.none_taken, counts.not_sent), sums))  # some may have been refused twice
        may_pass = stopped
    if twice:
        named = "; ".join(f"request {each.request_id}, {each}" for each in twice)
        words.append(f"the service accepted requests whose messages others had claimed meanwhile: {named}")
        may_pass = stopped
    if not (words or error or stopped) and counts.not_sent:
        are, them = by_count(counts.not_sent, "message is", "messages are"), by_count(counts.not_sent, "it", "them")
        words.append(
            f"{counts.not_sent} {are} free again that another process held, and not sent. The next attempt sends {them}"
        )
        may_pass = True
    words = [f"Campaign {run.campaign}: {each}" for each in words]
    if error is not None:
        words.insert(0, f"Sending ended early: {describe(error)}")
        may_pass = not is_permanent(error)
    elif stopped:
        stops = "Sending was stopped; the requests in flight are recorded, and the next attempt sends the rest"
        words.insert(0, stops)
    return FailedError(". ".join(words), transient=bool(may_pass)) if words else None


def _some_of(requests: Collection[int]) -> str:
    """Return the ids of requests for an error: more than a few would make a line that nobody reads."""
    return join_some([str(each) for each in sorted(requests)])


def _none_taken(count: int, sums: Sums) -> str:
    reasons = ", ".join(f"{name} {count}" for name, count in sums.error_report.items() if count)
    return (
        f"{count} {by_count(count, 'message is', 'messages are')} not sent, since the service took nothing of "
        f"{by_count(count, 'its request', 'their requests')} ({reasons or 'it gave no reason'} in its error reports). "
        f"Clearing the task sends {by_count(count, 'it', 'them')} again, which helps only once the reason is gone"
    )


def _awaited(count: int, requests: Collection[int]) -> str:
    return (
        f"{count} {by_count(count, 'message is', 'messages are')} claimed by another process that has recorded no "
        f"outcome: {by_count(len(requests), 'request')} {_some_of(requests)}. {by_count(count, 'It', 'They')} may have "
        "been sent. The next attempt finds the outcome, or treats requests without one by then as unknown"
    )


def _what_to_do(run: Run, messages: int) -> str:
    campaign, ledger, reconciles = run.campaign, run.task.ledger_conn_id, run.options.on_unknown == "reconcile"
    # With an equals sign, a name that begins with a dash is no option.
    command = f"airflow-sms unknown --campaign{'=' if campaign.startswith('-') else ' '}{quote(campaign)}"
    if reconciles:  # the balance may tell later what it does not tell now
        command += " --read-balance"
    there = "" if ledger is None else f" --ledger-conn-id {quote(ledger)}"
    proved = "" if reconciles else ". on_unknown='reconcile' closes the requests whose outcome the balance shows"
    return (
        f"{by_count(messages, 'It is', 'They are')} not sent again. A person decides: with {command}{there}, "
        f"then airflow-sms resolve{there}; or on the campaign's page, under SMS in Airflow's navigation{proved}"
    )


def _told(evidence: Iterable[KeptEvidence | None]) -> str:
    """Return what the balance tells of requests, with a space after each sentence; empty where it tells nothing."""
    told = sentences(evidence)
    if len(told) > MAX_SENTENCES:
        told[MAX_SENTENCES:] = [f"And {len(told) - MAX_SENTENCES} more: see airflow-sms unknown."]
    return "".join(f"{each} " for each in told)
