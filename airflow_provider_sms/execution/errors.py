"""What Airflow is told of an attempt that fails: the words, and whether a retry could help."""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import LedgerLostError, ServiceError, SmsError
from airflow_provider_sms.formatting import by_count, counted, join_some
from airflow_provider_sms.reporting.balance_words import sentences
from airflow_provider_sms.sending.stop_conditions import is_out_of_credit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from airflow_provider_sms.execution.options import OnUnknown
    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.model import TextedTwice
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.reporting.summary import Sums

log = logging.getLogger(__name__)

MAX_SENTENCES = 3
"""Sentences about the balance that an error has; the command ``unknown`` shows all."""
SINCE_THE_WAIT = ". This is about the time since the attempt's last wait: what it sent before is in its summary"


class FailedError(SmsError):
    """Not every message was accepted."""

    def __init__(self, words: str, *, transient: bool) -> None:
        super().__init__(words)
        self.transient = transient


@contextmanager
def airflow_errors(*, resumed: bool = False) -> Iterator[None]:
    """Raise every error of the block as one of Airflow's, which tells whether a retry could help.

    :param resumed: whether the attempt goes on after a wait, before which it may have sent something.
    """
    try:
        yield
    except AirflowException:
        raise
    except Exception as error:  # noqa: BLE001  # a source can fail in any way, and its error may quote a row
        log_unforeseen(error)
        failure_class = AirflowFailException if is_permanent(error) else AirflowException
        # The cause of an error of this package, such as a driver's error, tells more; any other may quote a row.
        cause = error.__cause__ if isinstance(error, SmsError) else None
        raise failure_class(words_of(error, resumed=resumed)) from cause


def is_permanent(error: BaseException) -> bool:
    """Return whether a retry would fail as well unless somebody changes something; credit may arrive without that."""
    return isinstance(error, SmsError) and not error.transient and not is_out_of_credit(error)


def graver(error: Exception | None, other: Exception) -> Exception:
    """Return the error that a task fails with: the first, unless the other tells that the ledger has gone back."""
    return other if error is None or isinstance(other, LedgerLostError) else error


def describe(error: BaseException) -> str:
    """Return an error of this package in words; of any other error only the type, since its words may quote a row."""
    if isinstance(error, ServiceError) and error.place is not None:
        tries = f", {counted(error.attempts, 'try', 'tries')}" if error.attempts > 1 else ""
        return f"{error} ({error.place}{tries})"
    return str(error) if isinstance(error, SmsError) else f"{type(error).__name__} (see the log above)"


def words_of(error: BaseException, *, resumed: bool) -> str:
    """Return an error in words, which say that nothing was sent, perhaps, and after a wait since when."""
    return describe(error) + (SINCE_THE_WAIT if resumed and not isinstance(error, FailedError) else "")


def log_unforeseen(error: Exception | None) -> None:
    """Log the place of an error that is not from this package, without its words, which may quote a row."""
    if error is not None and not isinstance(error, SmsError):
        log.error("%s at:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))


class Unsettled(NamedTuple):
    """What the ledger tells of messages whose outcome needs somebody; empty where it cannot be read.

    :param lost: the requests whose outcome is unknown.
    :param twice: messages that were texted twice, or may have been.
    """

    lost: Sequence[RequestRow] = ()
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
) -> FailedError | None:
    """Return why a task fails; None if every message that has to be accepted was accepted, now or before.

    :param error: the error that ended the sending early; None where nothing failed.
    :param stopped: whether the task was told to stop.
    :param ledger_conn_id: the connection to the task's ledger, for a command; None means the configured ledger.
    """
    awaited = sum(counts.unsettled[each] for each in counts.awaited)
    held = sum(counts.unsettled.values())
    lost, again, resends = held - awaited, counts.unknown - held, on_unknown == "resend"
    words: list[str] = []
    if lost:
        told = _told(each.evidence for each in unsettled.lost)
        then = (
            f"The next attempt sends {by_count(lost, 'it', 'them')} again, at the risk of texting people twice"
            if resends
            else _what_to_do(campaign, lost, ledger_conn_id, reconciles=on_unknown == "reconcile")
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
    if unsettled.twice:
        twice = "; ".join(f"request {each.request_id}, {each}" for each in unsettled.twice)
        words.append(f"the service accepted requests whose messages others had claimed meanwhile: {twice}")
        may_pass = stopped
    if not (words or error or stopped) and counts.not_sent:
        are, them = by_count(counts.not_sent, "message is", "messages are"), by_count(counts.not_sent, "it", "them")
        words.append(
            f"{counts.not_sent} {are} free again that another process held, and not sent. The next attempt sends {them}"
        )
        may_pass = True
    words = [f"Campaign {campaign}: {each}" for each in words]
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


def _what_to_do(campaign: str, messages: int, ledger_conn_id: str | None, *, reconciles: bool) -> str:
    # With an equals sign, a name that begins with a dash is no option.
    command = f"airflow-sms unknown --campaign{'=' if campaign.startswith('-') else ' '}{quote(campaign)}"
    if reconciles:  # the balance may tell later what it does not tell now
        command += " --read-balance"
    there = "" if ledger_conn_id is None else f" --ledger-conn-id {quote(ledger_conn_id)}"
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
