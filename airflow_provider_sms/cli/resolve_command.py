"""The command that closes requests whose outcome is unknown: resolve.

It shows what the balance tells of them, says what each outcome means, and asks for confirmation.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import (
    MAX_LISTED,
    command,
    confirm,
    end_with_wrong_usage,
    join_some,
    print_message,
    user_name,
)
from airflow_provider_sms.cli.existing_ledger import existing_ledger
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import by_count, counted, iso, task_words
from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT
from airflow_provider_sms.reporting.balance_words import sentences, verdict_words

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.request_queries import RequestRow


@command
def resolve_requests(args: Namespace) -> None:
    """Close unknown requests by their numbers, or all of a campaign."""
    if error := _usage_error(args):
        end_with_wrong_usage(error)
    with existing_ledger(args) as store:
        rows = _resolve_all(store, args) if args.all else _resolve_by_number(store, args)
        if rows:
            _print_tasks_to_clear(store, rows)
    if args.requests and (left := len({*args.requests}) - len(rows)):
        raise InputError(f"{counted(left, 'request')} could not be closed")


def _print_tasks_to_clear(store: LedgerBackend, rows: Sequence[RequestRow]) -> None:
    """Print the tasks to run again: those that made the requests, or failed on unknown requests of their campaigns."""
    from airflow_provider_sms.ledger.progress import failed_on_unknown

    failed = failed_on_unknown(store, {row.campaign for row in rows})
    tasks = dict.fromkeys([row.task_instance for row in rows] + [who.task_instance for who in failed])
    if len(tasks) == 1:
        print_message("Now clear the failed task in Airflow, so that it runs again:")
    else:
        print_message("Now clear the failed tasks in Airflow, so that they run again:")
    for task in tasks:
        print_message(f"  {task_words(*task)}")


def _usage_error(args: Namespace) -> str | None:
    """Return the error in a combination of arguments; None means that there is none."""
    if args.all and args.requests:
        return "Give the numbers of requests or --all, not both"
    if args.all and args.campaign is None:
        return "--all needs --campaign NAME: it closes the requests of one campaign"
    if not args.all and (args.campaign, args.since, args.until, args.reason) != (None, None, None, None):
        return "--campaign, --since, --until and --reason need --all"
    if args.reason is not None and not args.reason.strip():
        return "--reason needs a text: an empty one, as of a variable that is not set, would select every request"
    if not (args.all or args.requests):
        return "Give the numbers of requests, or --campaign NAME --all"
    return None


def _resolve_by_number(store: LedgerBackend, args: Namespace) -> list[RequestRow]:
    """Close requests by their numbers, and return the closed ones; those that have an outcome by then keep it."""
    from airflow_provider_sms.ledger.decisions import require_unknown, resolve
    from airflow_provider_sms.ledger.request_queries import named_requests

    rows = named_requests(store, args.requests)
    for row in rows:
        require_unknown(store, row.request_id)
        print_message(_describe(row))
    _print_evidence(rows)
    state, name = _outcome(args)
    _confirm_closing(args, rows)
    closed: list[RequestRow] = []
    for row in rows:
        try:
            held = resolve(store, row.request_id, state, user_name())
        except InputError as error:  # the response has arrived, or somebody else has decided
            print_message(str(error))
        else:
            print_message(f"Request {row.request_id} is closed as {name}: {counted(held, 'message')}")
            closed.append(row)
    return closed


def _resolve_all(store: LedgerBackend, args: Namespace) -> list[RequestRow]:
    """Close the unknown requests of a campaign that the arguments select, and return the closed ones."""
    from airflow_provider_sms.ledger.decisions import resolve_all
    from airflow_provider_sms.ledger.request_queries import unknown_requests
    from airflow_provider_sms.ledger.statistics import count_under_way

    unknown = unknown_requests(store, args.campaign)
    rows = [row for row in unknown if _is_selected(row, args)]
    print_message(*_count_by_reason(args.campaign, rows, others=len(unknown) - len(rows)))
    _print_evidence(rows)
    if under_way := count_under_way(store, args.campaign):
        print_message(f"{counted(under_way, 'request')} that may still be under way cannot be closed yet")
    if not rows:
        return []
    state, name = _outcome(args)
    _confirm_closing(args, rows)
    closed: dict[int, int] = {}
    for some in resolve_all(store, args.campaign, [row.request_id for row in rows], state, user_name()):
        closed |= some
        # Printed after each commit: if the command is interrupted, its last line says what is closed.
        messages = counted(sum(closed.values()), "message")
        print_message(f"Closed as {name}: {len(closed):,} of {counted(len(rows), 'request')}, {messages}")
    if left := len(rows) - len(closed):
        its = by_count(left, "its", "their")
        print_message(f"Not closed, because {its} outcome was recorded in the meantime: {counted(left, 'request')}")
    return [row for row in rows if row.request_id in closed]


def _is_selected(row: RequestRow, args: Namespace) -> bool:
    """Return whether the arguments select a request; times are compared as they are shown, in whole seconds."""
    claimed = int(row.claimed_at)
    if args.since is not None and claimed < int(args.since.timestamp()):
        return False
    if args.until is not None and claimed > int(args.until.timestamp()):
        return False
    return args.reason is None or args.reason.casefold() in (row.reason or "").casefold()


def _count_by_reason(campaign: str, rows: Sequence[RequestRow], others: int) -> list[str]:
    """Return a message with the number of unknown requests, their times and reasons, in lines.

    :param others: further unknown requests of the campaign.
    """
    unselected = f"; {counted(others, 'unknown request')} not selected" if others else ""
    if not rows:
        return [f"Campaign {campaign} has no such unknown request{unselected}"]
    times = [row.claimed_at for row in rows]
    first = (
        f"Campaign {campaign}: {counted(len(rows), 'unknown request')} with {_messages_of(rows)}, claimed from "
        f"{iso(min(times))} to {iso(max(times))}{unselected}. Why they are unknown:"
    )
    by_reason: dict[str, list[RequestRow]] = {}
    for row in rows:
        by_reason.setdefault(row.reason or "not recorded", []).append(row)
    most = sorted(by_reason.items(), key=lambda each: -len(each[1]))
    lines = [f"  {counted(len(some), 'request')} with {_messages_of(some)}: {why}" for why, some in most[:MAX_LISTED]]
    if (more := len(most) - MAX_LISTED) > 0:
        lines.append(f"  and {counted(more, 'more reason')}: see airflow-sms ledger unknown")
    return [first, *lines]


def _confirm_closing(args: Namespace, rows: Sequence[RequestRow]) -> None:
    """Print what closing requests means, and ask for confirmation."""
    state, name = _outcome(args)
    messages = sum(row.messages for row in rows)
    to_groups = sum(row.messages for row in rows if row.kind == "group")
    people = messages + to_groups  # a message to groups has several: only the service knows how many
    if state == NOT_SENT:
        print_message(
            f"Not sent frees {_messages_of(rows)}: the next attempt texts "
            f"{by_count(people, 'this person', 'these people')}. If the service did take "
            f"{by_count(messages, 'it', 'any of them')}, "
            f"{by_count(people, 'that person gets', 'those people get')} the text twice."
        )
    else:
        them = by_count(messages, "it", "them")
        print_message(
            f"Accepted counts {_messages_of(rows)} as sent: the campaign never sends {them} again. If the service did "
            f"not take {them}, {by_count(people, 'that person never gets', 'those people never get')} the text."
        )
    if to_groups:
        print_message(
            f"{counted(to_groups, 'message goes', 'messages go')} to groups, however many people are in them: only the "
            "service knows."
        )
    contrary = CHARGED if state == NOT_SENT else NOT_CHARGED
    if contradicted := [row for row in rows if row.evidence is not None and row.evidence.verdict == contrary]:
        ids, verdict = join_some([str(row.request_id) for row in contradicted]), verdict_words(contradicted[0].evidence)
        were = f"request {ids} was" if len(contradicted) == 1 else f"requests {ids} were"
        print_message(f"The balance contradicts this: by it, {were} {verdict}")
    confirm(f"Close {counted(len(rows), 'request')} as {name}?", yes=args.yes)


def _print_evidence(rows: Sequence[RequestRow]) -> None:
    """Print what the balance tells of requests, where it was read."""
    verdicts = Counter(verdict_words(row.evidence) for row in rows if row.evidence is not None)
    if verdicts:
        counts = ", ".join(f"{counted(count, 'request')} {verdict}" for verdict, count in verdicts.items())
        told = sentences(row.evidence for row in rows)
        print_message(f"The balance: {counts}", *(f"  {each}" for each in told[:MAX_LISTED]))
        if len(told) > MAX_LISTED:
            print_message(f"  and {len(told) - MAX_LISTED} more: see airflow-sms ledger unknown")


def _outcome(args: Namespace) -> tuple[str, str]:
    """Return the state to record, and its name in messages."""
    return (NOT_SENT, "not sent") if args.outcome == "not-sent" else (ACCEPTED, "accepted")


def _messages_of(rows: Sequence[RequestRow]) -> str:
    return counted(sum(row.messages for row in rows), "message")


def _describe(row: RequestRow) -> str:
    return (
        f"Request {row.request_id} of campaign {row.campaign}: {counted(row.messages, 'message')}, claimed at "
        f"{iso(row.claimed_at)} by attempt {row.try_number} of "
        f"{task_words(*row.task_instance)}. Why: {row.reason or 'not recorded'}"
    )
