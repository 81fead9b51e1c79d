"""Commands by which a person changes the ledger: resolve, adopt, pause, resume, purge. Each explains itself.

What cannot be taken back is asked for first.
"""

from __future__ import annotations

import getpass
import os
import shlex
import socket
from contextlib import closing
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import command, confirm, counted, note, utc
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.hooks.ledger import open_existing_ledger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.requests import RequestRow

MAX_NAMED = 20
WRONG_USAGE = 2
"""The exit status that argparse has for it."""


@command
def resolve_requests(args: Namespace) -> None:
    """Close unknown requests: those that are named, or all of a campaign."""
    if wrong := _wrong_usage(args):
        note(wrong)
        raise SystemExit(WRONG_USAGE)
    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        rows = _resolve_all(store, args) if args.all else _resolve_named(store, args)
    if rows:
        note("Now clear the failed task in Airflow, so that it runs again:")
    for task in dict.fromkeys(_task(row.dag_id, row.task_id, row.run_id, row.map_index) for row in rows):
        note(f"  {task}")


def _wrong_usage(args: Namespace) -> str | None:
    """Return what is wrong with the arguments together; None where nothing is."""
    if args.all and args.requests:
        return "Name requests, or say --all; not both"
    if args.all and args.campaign is None:
        return "--all needs --campaign NAME: nothing closes the requests of several campaigns at once"
    if not args.all and (args.campaign, args.since, args.until, args.reason) != (None, None, None, None):
        return "--campaign, --since, --until and --reason choose of --all: say --all, too"
    if not (args.all or args.requests):
        return "Name requests, or say --campaign NAME --all"
    return None


def _resolve_named(store: LedgerBackend, args: Namespace) -> list[RequestRow]:
    """Close requests by their numbers, and return them."""
    from airflow_provider_sms.ledger.decisions import require_unknown, resolve
    from airflow_provider_sms.ledger.requests import named_requests

    rows = named_requests(store, args.requests)
    for row in rows:
        require_unknown(store, row.request_id)
        note(_described(row))
    state, words = _outcome(args)
    _confirm_closing(args, rows)
    for row in rows:
        held = resolve(store, row.request_id, state, _user())
        note(f"Request {row.request_id} is closed as {words}: {counted(held, 'message')}")
    return rows


def _resolve_all(store: LedgerBackend, args: Namespace) -> list[RequestRow]:
    """Close the unknown requests of a campaign, or some of them, and return those that were closed."""
    from airflow_provider_sms.ledger.decisions import resolve_all
    from airflow_provider_sms.ledger.requests import unknown_requests
    from airflow_provider_sms.ledger.statistics import count_under_way

    unknown = unknown_requests(store, args.campaign)
    rows = [row for row in unknown if _is_chosen(row, args)]
    note(_counted_by_reason(args.campaign, rows, others=len(unknown) - len(rows)))
    if under_way := count_under_way(store, args.campaign):
        note(f"{counted(under_way, 'request')} that may still be under way cannot be closed yet")
    if not rows:
        return []
    state, words = _outcome(args)
    _confirm_closing(args, rows)
    closed: dict[int, int] = {}
    for some in resolve_all(store, args.campaign, [row.request_id for row in rows], state, _user()):
        closed |= some
        # After each commit: where the command ends in the middle, its last line says what is closed for good.
        messages = counted(sum(closed.values()), "message")
        note(f"Closed as {words}: {len(closed)} of {counted(len(rows), 'request')}, {messages}")
    if left := len(rows) - len(closed):
        note(f"{counted(left, 'request')} had an outcome by then, which stays")
    return [row for row in rows if row.request_id in closed]


def _is_chosen(row: RequestRow, args: Namespace) -> bool:
    """Whether a request is one of those that the arguments choose; times count as they are shown, in whole seconds."""
    claimed = int(row.claimed_at)
    if args.since is not None and claimed < int(args.since.timestamp()):
        return False
    if args.until is not None and claimed > int(args.until.timestamp()):
        return False
    return args.reason is None or args.reason.casefold() in (row.reason or "").casefold()


def _counted_by_reason(campaign: str, rows: Sequence[RequestRow], others: int) -> str:
    """Return how many unknown requests there are, when they were claimed, and why they are unknown.

    :param others: unknown requests of the campaign that are not among these.
    """
    besides = f"; {counted(others, 'other unknown request')} of it stay as they are" if others else ""
    if not rows:
        return f"Campaign {campaign} has no such request to close{besides}"
    times = [row.claimed_at for row in rows]
    first = (
        f"Campaign {campaign}: {counted(len(rows), 'unknown request')} with {_messages_of(rows)}, claimed from "
        f"{utc(min(times))} to {utc(max(times))}{besides}. Why they are unknown:"
    )
    by_reason: dict[str, list[RequestRow]] = {}
    for row in rows:
        by_reason.setdefault(row.reason or "not noted", []).append(row)
    most = sorted(by_reason.items(), key=lambda each: -len(each[1]))
    lines = [f"  {counted(len(some), 'request')} with {_messages_of(some)}: {why}" for why, some in most[:MAX_NAMED]]
    if len(most) > MAX_NAMED:
        lines.append(f"  and {len(most) - MAX_NAMED} more reasons: see airflow-sms ledger unknown")
    return "\n".join([first, *lines])


def _confirm_closing(args: Namespace, rows: Sequence[RequestRow]) -> None:
    """Print what closing requests means, and ask whether to go on."""
    state, words = _outcome(args)
    if state == NOT_SENT:
        note(
            f"Not sent frees {_messages_of(rows)}: the next try texts these people. If the service took any of them "
            "after all, those people get the text twice."
        )
    else:
        note(
            f"Accepted keeps {_messages_of(rows)} as sent: nothing of it is sent again in the campaign. If the service "
            "did not take them, those people never get the text."
        )
    confirm(f"Close {counted(len(rows), 'request')} as {words}?", yes=args.yes)


def _outcome(args: Namespace) -> tuple[str, str]:
    """Return the state that a person says, and the words for it."""
    return (NOT_SENT, "not sent") if args.outcome == "not-sent" else (ACCEPTED, "accepted")


def _messages_of(rows: Sequence[RequestRow]) -> str:
    return counted(sum(row.messages for row in rows), "message")


@command
def adopt_task(args: Namespace) -> None:
    """Let a task go on with a ledger that does not know all of its earlier tries."""
    from airflow_provider_sms.ledger.decisions import adopt
    from airflow_provider_sms.ledger.high_water import high_water
    from airflow_provider_sms.ledger.model import Claimant

    task = _task(args.dag_id, args.task_id, args.run_id, args.map_index)
    host = f"{_user()}@{socket.gethostname()}"
    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        who = Claimant(args.dag_id, args.task_id, args.run_id, args.map_index, 0, host, 0)
        known = counted(high_water(store, who).requests, "request")
        note(
            f"The ledger {store.description} may then be used for {task}. It has {known} of that task.\n"
            "Whatever else an earlier try of it sent is not in this ledger, and will be sent again. If there is "
            "another ledger that knows it, use that one instead."
        )
        confirm("Let the task go on with this ledger?", yes=args.yes)
        adopt(store, who)
    note(f"Adopted. Now clear it in Airflow, so that it runs again: {task}")


@command
def pause_campaign(args: Namespace) -> None:
    """Have nothing more of a campaign claimed. Nobody is asked: it can be taken back, and may be urgent."""
    from airflow_provider_sms.ledger.pauses import pause

    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        done = pause(store, args.campaign, _user())
    if done.was_paused:
        note(f"Campaign {args.campaign} is paused already, by {done.pause.paused_by} since {utc(done.pause.paused_at)}")
    else:
        note(f"Campaign {args.campaign} is paused: from now on no task claims anything of it, on any machine.")
    if done.requests:
        note(
            f"At most {counted(done.requests, 'request')} with {counted(done.messages, 'message')} may be under way: "
            "what was claimed before is still posted, and recorded."
        )
    note(
        "Nothing is lost: tasks that send it wait, holding their slots, and go on when you say\n"
        f"  airflow-sms ledger resume {shlex.quote(args.campaign)}"
    )


@command
def resume_campaign(args: Namespace) -> None:
    """Let a campaign that is paused go on."""
    from airflow_provider_sms.ledger.pauses import resume

    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        ended = resume(store, args.campaign, _user())
    if ended is None:
        note(f"Campaign {args.campaign} is not paused: there is nothing to resume")
    else:
        note(
            f"Campaign {args.campaign} goes on: {ended.paused_by} had paused it at {utc(ended.paused_at)}. "
            "Tasks that wait for it claim again; one that has ended since is to be cleared in Airflow"
        )


@command
def purge(args: Namespace) -> None:
    """Forget campaigns in which nothing has happened for long, and what balances were before."""
    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        before = store.clock() - args.older_than
        failed = _purge_campaigns(store, before, yes=args.yes, include_waiting=args.include_waiting)
        _purge_balances(store, before, yes=args.yes)
    if failed:
        raise InputError(f"{counted(failed, 'campaign')} could not be forgotten")


def _purge_campaigns(store: LedgerBackend, before: float, *, yes: bool, include_waiting: bool) -> int:
    """Forget campaigns, and give how many could not be.

    :param include_waiting: forget those, too, of which a task waits.
    """
    from airflow_provider_sms.ledger.purge import forget, forget_claimants, old_campaigns

    found = old_campaigns(store, before)
    kept = [old for old in found if old.open_requests]
    paused = [old for old in found if old.paused and not old.open_requests]
    others = [old for old in found if not (old.open_requests or old.paused)]
    waiting = [] if include_waiting else [old for old in others if old.waiting]
    going = [old for old in others if old not in waiting]
    if kept:
        note(f"Kept, since requests of them are unknown or under way: {_named([old.name for old in kept])}")
    if paused:
        note(f"Kept, since they are paused: {_named([old.name for old in paused])}")
    for state in sorted({old.waiting or "" for old in waiting}):
        names = _named([old.name for old in waiting if old.waiting == state])
        note(f"Kept, since a task of them is {state}, and would text people again: {names}")
    if waiting:
        note("Where such a task waits no more, as one that was marked or deleted in Airflow: add --include-waiting")
    if not going:
        note(f"No campaign can be forgotten: something has happened in each since {utc(before)}, or it is kept")
        return 0
    note(
        f"To be forgotten: {counted(len(going), 'campaign')} with "
        f"{counted(sum(old.messages for old in going), 'message')}, in which nothing has happened since "
        f"{utc(before)}: {_named([old.name for old in going])}"
    )
    note("A campaign that is forgotten protects nobody any more: run again under its name, it texts everybody again.")
    confirm(f"Forget {counted(len(going), 'campaign')}?", yes=yes)
    failed = 0
    for old in going:
        try:
            messages = forget(store, old)
        except InputError as error:
            note(str(error))
            failed += 1
        else:
            note(f"Forgotten: {old.name}, {counted(messages, 'message')}")
    tries = forget_claimants(store, before)
    note(f"Forgotten, too: {tries} {'try' if tries == 1 else 'tries'} that nothing refers to any more")
    return failed


def _purge_balances(store: LedgerBackend, before: float, *, yes: bool) -> None:
    from airflow_provider_sms.ledger.balances import count_balances, forget_balances

    seen = count_balances(store, before)
    if seen:
        confirm(f"Forget {counted(seen, 'balance')} that tasks saw before {utc(before)}?", yes=yes)
        note(f"Forgotten: {counted(forget_balances(store, before), 'balance')} that tasks saw before")


def _described(row: RequestRow) -> str:
    return (
        f"Request {row.request_id} of campaign {row.campaign}: {counted(row.messages, 'message')}, claimed at "
        f"{utc(row.claimed_at)} by try {row.try_number} of "
        f"{_task(row.dag_id, row.task_id, row.run_id, row.map_index)}. Why: {row.reason or 'not noted'}"
    )


def _task(dag_id: str, task_id: str, run_id: str, map_index: int) -> str:
    mapped = "" if map_index < 0 else f", map index {map_index}"
    return f"task {task_id} of DAG {dag_id}, run {run_id}{mapped}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"  # a container's user need not have a name
