"""The failure of a task: its words, and whether a retry by Airflow could help."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.common.compat.sdk import AirflowFailException

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
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from airflow_provider_sms.execution.options import OnUnknown
    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import TextedTwice
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.reporting.summary import Sums

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


def graver(error: Exception | None, other: Exception) -> Exception:
    """Return the error that a task fails with: the first, unless the other tells that the ledger has gone back."""
    return other if error is None or isinstance(other, LedgerLostError) else error


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


@contextmanager
def failing_for_good_if_lost(ledger: CampaignLedger) -> Iterator[None]:
    """Let nothing that the block raises hide that the ledger went back: a retry would text forgotten people twice."""
    try:
        yield
    except AirflowFailException:
        raise
    except BaseException as error:
        if ledger.lost is None:
            raise
        raise AirflowFailException(f"Sending ended early: {ledger.lost}") from error


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


class Unsettled(NamedTuple):
    """What the ledger tells of messages whose outcome needs somebody; empty where it cannot be read.

    :param lost: the requests whose outcome is unknown.
    :param awaited: those of other processes, which may still record it.
    :param twice: messages that were texted twice, or may have been.
    """

    lost: Sequence[RequestRow] = ()
    awaited: Sequence[RequestRow] = ()
    twice: Sequence[TextedTwice] = ()


def failure(
    campaign: str,
    counts: RowCounts,
    sums: Sums,
    unsettled: Unsettled,
    error: Exception | None,
    *,
    stopped: bool,
    on_unknown: OnUnknown,
    ledger_conn_id: str | None = None,
    to_groups: bool = False,
) -> Failure | None:
    """Return why a task fails; None if every message that has to be accepted was accepted, now or before.

    :param error: the error that ended the sending early; None where nothing failed.
    :param stopped: whether the task was told to stop.
    :param ledger_conn_id: the connection to the task's ledger, for a command; None means the configured ledger.
    :param to_groups: whether the send is one text to groups, which are in no table.
    """
    words: list[str] = []
    if error is not None:
        words.append(f"Sending ended early: {describe(error)}")
    elif stopped:
        words.append("Sending was stopped; the requests in flight are recorded, and the next attempt sends the rest")
    awaited = sum(counts.unsettled[each] for each in counts.awaited)
    held = sum(counts.unsettled.values())
    lost, again, resends = held - awaited, counts.unknown - held, on_unknown == "resend"
    if lost:
        what = _what_to_do(campaign, lost, ledger_conn_id, reconciles=on_unknown == "reconcile")
        words.append(_unknown(campaign, counts, lost, unsettled.lost, _what_is_resent(lost) if resends else what))
    words += _again(campaign, again, error)
    if awaited:
        words.append(_awaited(campaign, awaited, unsettled.awaited))
    others: list[str] = []
    if sums.none_taken and counts.not_sent:
        others.append(_no_group_taken(campaign, sums) if to_groups else _none_taken(campaign, counts, sums))
    if unsettled.twice:
        others.append(_texted_twice(campaign, unsettled.twice))
    words += others
    if not words and counts.not_sent:
        are, them = (
            by_count(counts.not_sent, "message that another process held is", "messages that another process held are"),
            by_count(counts.not_sent, "it", "them"),
        )
        words.append(
            f"Campaign {campaign}: {counts.not_sent} {are} free now, and not sent. The next attempt sends {them}"
        )
        return Failure(words[0], permanent=False)
    if not words:
        return None
    if error is not None:
        return Failure(". ".join(words), is_permanent(error))
    # A retry finds the outcomes, or treats the requests as unknown. But a failure that needs a person needs one now.
    may_pass = stopped or (lost and resends) or ((awaited or again) and not (lost or others))
    return Failure(". ".join(words), permanent=not may_pass)


def some_of(requests: Collection[int]) -> str:
    """Return the ids of requests for an error, with the number of requests left out."""
    more = len(requests) - MAX_NAMED_REQUESTS
    named = ", ".join(map(str, sorted(requests)[:MAX_NAMED_REQUESTS]))
    return f"{named} and {more} more" if more > 0 else named


def _reasons(sums: Sums) -> str:
    reasons = ", ".join(f"{name} {count}" for name, count in sums.error_report.items() if count)
    return f"{reasons or 'it gave no reason'} in its error reports"


def _none_taken(campaign: str, counts: RowCounts, sums: Sums) -> str:
    count = min(sums.none_taken, counts.not_sent)  # some may have been refused twice
    them = by_count(count, "it", "them")
    return (
        f"Campaign {campaign}: {count} {by_count(count, 'message is', 'messages are')} not sent, since the service "
        f"took nothing of {by_count(count, 'its request', 'their requests')} ({_reasons(sums)}). Clearing the task "
        f"sends {them} again, which helps only once the reason is gone; otherwise take {them} out of the source, or "
        f"list the {by_count(count, 'number')} in suppress"
    )


def _no_group_taken(campaign: str, sums: Sums) -> str:
    return (
        f"Campaign {campaign}: the text is not sent, since the service took nothing of its request ({_reasons(sums)})"
        ". Clearing the task sends it again, which helps only once the reason is gone: check at the service that the "
        "groups have members"
    )


def _texted_twice(campaign: str, twice: Iterable[TextedTwice]) -> str:
    told = "; ".join(f"request {each.request_id}, {each}" for each in twice)
    return f"Campaign {campaign}: the service accepted requests whose messages others had claimed meanwhile: {told}"


def _awaited(campaign: str, count: int, requests: Iterable[RequestRow]) -> str:
    made: dict[str, list[int]] = {}
    for each in requests:
        made.setdefault(_attempt(each), []).append(each.request_id)
    by = [f"{by_count(len(some), 'request')} {some_of(some)} by {who}" for who, some in made.items()]
    return (
        f"Campaign {campaign}: {count} {by_count(count, 'message is', 'messages are')} claimed by another process that "
        f"has recorded no outcome: {'; '.join(by[:MAX_NAMED_REQUESTS])}. {by_count(count, 'It', 'They')} may have been "
        "sent. The next attempt finds the outcome, or treats requests without one by then as unknown"
    )


def _attempt(made: RequestRow) -> str:
    return f"attempt {made.try_number} of {task_words(*made.task_instance)}"


def _unknown(campaign: str, counts: RowCounts, lost: int, requests: Collection[RequestRow], then: str) -> str:
    ids = set(counts.unsettled) - counts.awaited
    where = f" in the ledger's {by_count(len(ids), 'request')} {some_of(ids)}" if ids else ""
    messages = f"{lost} {by_count(lost, 'message')}"
    told = _told(each.evidence for each in requests)
    return f"Campaign {campaign}: {messages}{where} may have been sent: {lost_words(requests)}. {told}{then}"


def lost_words(requests: Collection[RequestRow]) -> str:
    """Return why the outcome of requests is unknown: of a claim that has lapsed, nobody knows whether it was posted."""
    is_known = requests and all(each.reason != LAPSED for each in requests)
    return "the service's response was lost" if is_known else "the sending process ended or lost the response"


def _again(campaign: str, count: int, error: Exception | None) -> list[str]:
    """Return words about messages of superseded requests, or of any where the ledger could not be read."""
    if not count:
        return []
    then = "" if error is not None else f". The next attempt sends {by_count(count, 'it', 'them')} again"
    return [f"Campaign {campaign}: {counted(count, 'message')} may have been sent{then}"]


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
