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

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_provider_sms.sending.inquiry import RequestRow
    from airflow_provider_sms.sending.store import Store

MAX_NAMED = 20


@command
def resolve_requests(args: Namespace) -> None:
    """Say what became of unknown requests."""
    from airflow_provider_sms.sending.claims import ACCEPTED, NOT_SENT
    from airflow_provider_sms.sending.decisions import require_unknown, resolve
    from airflow_provider_sms.sending.inquiry import named_requests

    released = args.outcome == "not-sent"
    with closing(open_existing_ledger(args.ledger_conn_id)) as store:
        rows = named_requests(store, args.requests)
        for row in rows:
            require_unknown(store, row.request_id)
            note(_described(row))
        messages = counted(sum(row.messages for row in rows), "message")
        if released:
            note(
                f"Not sent frees {messages}: the next try texts these people. If the service took any of them after "
                "all, those people get the text twice."
            )
        else:
            note(
                f"Accepted keeps {messages} as sent: nothing of it is sent again in the campaign. If the service did "
                "not take them, those people never get the text."
            )
        confirm(f"Close {counted(len(rows), 'request')} as {'not sent' if released else 'accepted'}?", yes=args.yes)
        for row in rows:
            held = resolve(store, row.request_id, NOT_SENT if released else ACCEPTED, _user())
            note(
                f"Request {row.request_id} is closed as {'not sent' if released else 'accepted'}: "
                f"{counted(held, 'message')}"
            )
    note("Now clear the failed task in Airflow, so that it runs again:")
    for task in dict.fromkeys(_task(row.dag_id, row.task_id, row.run_id, row.map_index) for row in rows):
        note(f"  {task}")


@command
def adopt_task(args: Namespace) -> None:
    """Let a task go on with a ledger that does not know all of its earlier tries."""
    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.decisions import adopt
    from airflow_provider_sms.sending.high_water import high_water

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
    from airflow_provider_sms.sending.pauses import pause

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
    from airflow_provider_sms.sending.pauses import resume

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


def _purge_campaigns(store: Store, before: float, *, yes: bool, include_waiting: bool) -> int:
    """Forget campaigns, and give how many could not be.

    :param include_waiting: forget those, too, of which a task waits.
    """
    from airflow_provider_sms.sending.purge import forget, forget_claimants, old_campaigns

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


def _purge_balances(store: Store, before: float, *, yes: bool) -> None:
    from airflow_provider_sms.sending.balances import count_balances, forget_balances

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
