"""The failure of a task: its words, and whether a retry by Airflow could help."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import (
    InputError,
    LedgerLostError,
    LedgerVersionError,
    ServiceError,
    SmsError,
    TooManyErrorsError,
)
from airflow_provider_sms.formatting import by_count, counted, task_words
from airflow_provider_sms.ledger.model import LAPSED
from airflow_provider_sms.reporting.balance_words import sentences
from airflow_provider_sms.sending.stop_conditions import is_out_of_credit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.model import Claimant
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.sending.counts import SendCounts

log = logging.getLogger(__name__)

MAX_NAMED_REQUESTS = 20
"""Requests that an error names: more would make a line that nobody reads; the ledger lists all."""
MAX_SENTENCES = 3
"""Sentences about the balance that an error has; the command ``unknown`` shows all."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a task fails.

    :param words: for the log; without a number, a text or a token.
    :param permanent: whether a retry would be wasted.
    """

    words: str
    permanent: bool


def is_permanent(error: BaseException) -> bool:
    """Return whether a retry would fail as well unless somebody changes something; credit may arrive without that."""
    if isinstance(error, ServiceError):
        return not error.transient and not is_out_of_credit(error)
    if isinstance(error, InputError):
        return not error.transient
    return isinstance(error, (LedgerLostError, LedgerVersionError, TooManyErrorsError))


def nothing_more(words: str) -> str:
    """Return words about an attempt that may have sent something: they may not say that it sent nothing."""
    return words.replace("othing was sent", "othing more was sent").replace("sent nothing", "sent nothing more")


@contextmanager
def saying_nothing_more(may_have_sent: Callable[[], bool]) -> Iterator[None]:
    """Change the words of the error that the block raises, if the attempt may have sent something."""
    try:
        yield
    except Exception as error:
        if may_have_sent():
            error.args = tuple(nothing_more(each) if isinstance(each, str) else each for each in error.args)
        raise


def describe(error: BaseException) -> str:
    """Return an error of this package in words; of any other error only the type, since its words may quote a row."""
    if isinstance(error, ServiceError) and error.place is not None:
        tries = f", {counted(error.attempts, 'try', 'tries')}" if error.attempts > 1 else ""
        return f"{error} ({error.place}{tries})"
    return str(error) if isinstance(error, SmsError) else f"{type(error).__name__} (see the log above)"


def cause_of(error: BaseException) -> BaseException | None:
    """Return the cause that a task's failure shows: that of an error of this package, such as a driver's error.

    The package's error itself is not shown, since the failure repeats its words. Any other error may quote a row.
    """
    return error.__cause__ if isinstance(error, SmsError) else None


def log_unforeseen(error: Exception | None) -> None:
    """Log the place of an error that is not from this package, without its words, which may quote a row."""
    if error is not None and not isinstance(error, SmsError):
        log.error("%s at:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))


def failure(
    campaign: str,
    counts: SendCounts,
    error: Exception | None,
    *,
    stopped: bool,
    resend_unknown: bool,
    reconciles: bool = False,
    requests: Collection[RequestRow] = (),
    claimants: Mapping[int, Claimant] | None = None,
    ledger_conn_id: str | None = None,
    to_groups: bool = False,
) -> Failure | None:
    """Return why a task fails; None if every message that has to be accepted was accepted, now or before.

    :param error: the error that ended the sending early; None where nothing failed.
    :param stopped: whether the task was told to stop.
    :param resend_unknown: whether the next attempt sends unknown messages again.
    :param reconciles: whether the requests whose outcome the balance tells are closed already.
    :param requests: the unknown requests, as the ledger has them; empty where they could not be read.
    :param claimants: the attempts that made the unrecorded requests, by request; None where they are not known.
    :param ledger_conn_id: the connection to the task's ledger, for a command; None means the configured ledger.
    :param to_groups: whether the send is one text to groups, which are in no table.
    """
    words: list[str] = []
    if error is not None:
        words.append(f"Sending ended early: {describe(error)}")
    elif stopped:
        words.append("Sending was stopped; the requests in flight are recorded, and the next attempt sends the rest")
    lost, left = _lost(counts), sum(counts.left.values())
    if lost:
        what = _what_to_do(campaign, lost, ledger_conn_id, reconciles=reconciles)
        words.append(_unknown(campaign, counts, lost, requests, _what_is_resent(lost) if resend_unknown else what))
    if counts.unrecorded:
        words.append(_unrecorded(campaign, counts, claimants or {}))
    if left:
        words.append(_left(campaign, counts, _what_to_do(campaign, left, ledger_conn_id, reconciles=reconciles)))
    others = [
        say(campaign, counts)
        for applies, say in (
            (counts.none_taken, _no_group_taken if to_groups else _none_taken),
            (counts.texted_twice, _texted_twice),
        )
        if applies
    ]
    words += others
    if not words:
        return None
    if error is not None:
        return Failure(". ".join(words), is_permanent(error))
    # A retry finds the outcomes, or treats the requests as unknown. But a failure that needs a person needs one now.
    may_pass = counts.unrecorded and not (left or others)
    return Failure(". ".join(words), permanent=not (stopped or (resend_unknown and counts.unknown) or may_pass))


def some_of(requests: Collection[int]) -> str:
    """Return the ids of requests for an error, with the number of requests left out."""
    more = len(requests) - MAX_NAMED_REQUESTS
    named = ", ".join(map(str, sorted(requests)[:MAX_NAMED_REQUESTS]))
    return f"{named} and {more} more" if more > 0 else named


def _reasons(counts: SendCounts) -> str:
    reasons = ", ".join(f"{name} {count}" for name, count in counts.error_report.items() if count)
    return f"{reasons or 'it gave no reason'} in its error reports"


def _none_taken(campaign: str, counts: SendCounts) -> str:
    count = counts.none_taken
    them = by_count(count, "it", "them")
    return (
        f"Campaign {campaign}: {count} {by_count(count, 'message is', 'messages are')} not sent, since the service "
        f"took nothing of {by_count(count, 'its request', 'their requests')} ({_reasons(counts)}). Clearing the task "
        f"sends {them} again, which helps only once the reason is gone; otherwise take {them} out of the source, or "
        f"list the {by_count(count, 'number')} in suppress"
    )


def _no_group_taken(campaign: str, counts: SendCounts) -> str:
    return (
        f"Campaign {campaign}: the text is not sent, since the service took nothing of its request ({_reasons(counts)})"
        ". Clearing the task sends it again, which helps only once the reason is gone: check at the service that the "
        "groups have members"
    )


def _texted_twice(campaign: str, counts: SendCounts) -> str:
    told = "; ".join(f"request {each.request_id}, {each}" for each in counts.texted_twice)
    return f"Campaign {campaign}: the service accepted requests whose messages others had claimed meanwhile: {told}"


def _unrecorded(campaign: str, counts: SendCounts, claimants: Mapping[int, Claimant]) -> str:
    requests_of: dict[Claimant | None, list[int]] = {}
    for request_id in sorted(counts.unrecorded):
        requests_of.setdefault(claimants.get(request_id), []).append(request_id)
    by = [
        f"{by_count(len(some), 'request')} {some_of(some)} by {_attempt(who)}"
        for who, some in list(requests_of.items())[:MAX_NAMED_REQUESTS]
    ]
    count = sum(counts.unrecorded.values())
    return (
        f"Campaign {campaign}: {count} {by_count(count, 'message is', 'messages are')} claimed by another process that "
        f"has recorded no outcome: {'; '.join(by)}. {by_count(count, 'It', 'They')} may have been sent. The next "
        "attempt finds the outcome, or treats requests without one by then as unknown"
    )


def _attempt(who: Claimant | None) -> str:
    if who is None:
        return "an attempt that is not known"
    return f"attempt {who.try_number} of {task_words(*who.task_instance)}, on host {who.host}"


def _unknown(campaign: str, counts: SendCounts, lost: int, requests: Collection[RequestRow], then: str) -> str:
    named = some_of(counts.unknown_requests)
    where = f" in the ledger's {by_count(len(counts.unknown_requests), 'request')} {named}" if named else ""
    messages = f"{lost} {by_count(lost, 'message')}"
    told = _told(each.evidence for each in requests)
    why = lost_words(requests)
    return f"Campaign {campaign}: {messages}{where} may have been sent: {why}. {told}{then}"


def lost_words(requests: Collection[RequestRow]) -> str:
    """Return why the outcome of requests is unknown: of a claim that has lapsed, nobody knows whether it was posted."""
    is_known = requests and all(each.reason != LAPSED for each in requests)
    return "the service's response was lost" if is_known else "the sending process ended or lost the response"


def _left(campaign: str, counts: SendCounts, then: str) -> str:
    messages, requests = sum(counts.left.values()), by_count(len(counts.left), "request")
    return (
        f"Campaign {campaign}: {messages} {by_count(messages, 'message')} in the ledger's {requests} "
        f"{some_of(counts.left)} may have been sent earlier by this task, and "
        f"{by_count(messages, 'its row is', 'their rows are')} no longer in the source, or "
        f"{by_count(messages, 'its recipient has', 'their recipients have')} opted out. {then}"
    )


def _lost(counts: SendCounts) -> int:
    """Return how many messages may have been sent, because the response to their request was lost."""
    return counts.unknown - sum(counts.unrecorded.values())


def _what_is_resent(lost: int) -> str:
    return f"The next attempt sends {by_count(lost, 'it', 'them')} again, at the risk of texting people twice"


def _what_to_do(campaign: str, messages: int, ledger_conn_id: str | None, *, reconciles: bool) -> str:
    # With an equals sign, a name that begins with a dash is no option.
    command = f"airflow-sms unknown --campaign{'=' if campaign.startswith('-') else ' '}{quote(campaign)}"
    if reconciles:  # the balance may tell later what it does not tell now
        command += " --read-balance"
    there = "" if ledger_conn_id is None else f" --ledger-conn-id {quote(ledger_conn_id)}"
    proved = "" if reconciles else ". on_unknown='reconcile' closes the requests whose outcome the balance shows"
    return (
        f"{by_count(messages, 'It is', 'They are')} not sent again. A person decides: with {command}{there}, "
        f"then airflow-sms resolve{there}; or on the campaign's page, under SMS in Airflow's "
        f"navigation{proved}"
    )


def _told(evidence: Iterable[KeptEvidence | None]) -> str:
    """Return what the balance tells of requests, with a space after each sentence; empty where it tells nothing."""
    told = sentences(evidence)
    if len(told) > MAX_SENTENCES:
        told[MAX_SENTENCES:] = [f"And {len(told) - MAX_SENTENCES} more: see airflow-sms unknown."]
    return "".join(f"{each} " for each in told)
