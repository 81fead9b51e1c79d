"""The commands that change the ledger: adopt, pause, resume, forget, purge.

Each explains what it changes, and asks for confirmation of a change that no other command undoes.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import command, confirm, print_message, read_number, user_name
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted, iso, join_some, task_words

_DAY = 86_400

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_sms.ledger.backend import LedgerBackend


@command
def adopt_task(args: Namespace, store: LedgerBackend) -> None:
    """Let a task go on with a ledger that does not know all of its earlier attempts."""
    from airflow_provider_sms.hooks.ledger import has_task_instance
    from airflow_provider_sms.ledger.attempts import adopt, count_requests, has_trace
    from airflow_provider_sms.ledger.model import Claimant

    task = task_words(args.dag_id, args.task_id, args.run_id, args.map_index)
    host = f"{user_name()}@{socket.gethostname()}"
    who = Claimant(args.dag_id, args.task_id, args.run_id, args.map_index, 0, host, 0)
    instance = {"task_id": args.task_id, "run_id": args.run_id, "map_index": args.map_index}
    # The ledger may know nothing of the task, which is why it is adopted; then Airflow must have the task.
    if not (has_trace(store, who) or has_task_instance(dag_id=args.dag_id, **instance)):
        raise InputError(
            f"Neither Airflow nor the ledger {store.description} has {task}. Nothing was done. Write the ids "
            "exactly as Airflow shows them; a mapped task needs its --map-index"
        )
    known = counted(count_requests(store, who), "request")
    print_message(
        f"This lets {task} go on with the ledger {store.description}, which has {known} of that task.",
        "Messages of earlier attempts that are not in this ledger will be sent again. If another ledger has them, "
        "use that one instead.",
    )
    confirm("Let the task go on with this ledger?", yes=args.yes)
    adopt(store, who)
    print_message(f"Adopted. Now clear the task in Airflow, so that it runs again: {task}")


@command
def pause_campaign(args: Namespace, store: LedgerBackend) -> None:
    """Stop all claims of a campaign. Asks for no confirmation: resume undoes it, and it may be urgent."""
    from airflow_provider_sms.ledger.campaigns import pause

    before = pause(store, args.campaign, user_name())
    if before is not None:
        since = iso(before.paused_at)
        print_message(f"Campaign {args.campaign} is paused already, by {before.paused_by} since {since}")
    else:
        print_message(
            f"Campaign {args.campaign} is paused: from now on no task on any machine claims any of it.",
            "Requests that were claimed before are still posted, and their outcomes recorded.",
        )
    print_message("Nothing is lost: tasks that send it wait, holding their slots, until you run airflow-sms resume")


@command
def resume_campaign(args: Namespace, store: LedgerBackend) -> None:
    """End the pause of a campaign."""
    from airflow_provider_sms.ledger.campaigns import resume

    ended = resume(store, args.campaign, user_name())
    if ended is None:
        print_message(f"Campaign {args.campaign} is not paused: there is nothing to resume")
    else:
        print_message(
            f"Campaign {args.campaign} is resumed: {ended.paused_by} had paused it at {iso(ended.paused_at)}. "
            "Waiting tasks claim again; in Airflow, clear a task that has ended since"
        )


@command
def forget_person(args: Namespace, store: LedgerBackend) -> None:
    """Forget a number, and keep its messages from going out again."""
    from airflow_provider_sms.ledger.forget import forget_number
    from airflow_provider_sms.ledger.requests import texted

    digits = read_number(args.destination, args.default_region)
    found = texted(store, digits)
    campaigns = sorted({row.campaign for row in found})
    messages = sum(row.messages for row in found)
    print_message(f"The ledger {store.description} has {counted(messages, 'message')} to this number")
    if found:
        print_message(
            f"They stay claimed, by a digest, in {counted(len(campaigns), 'campaign')}: {join_some(campaigns)}. The "
            "same message is not sent to it again there."
        )
        print_message(
            "Other campaigns text the number as before: take it out of every table, or put it on a list of suppressed "
            "numbers. Row reports and Airflow's XComs are not changed."
        )
        confirm("Forget this number?", yes=args.yes)
        print_message(f"Forgotten in {counted(forget_number(store, digits, campaigns), 'message')}")
    # Even if nothing was found: an earlier command may have been kept from it.
    remains = store.remove_remains()
    print_message(remains.words)
    if remains.is_gone is False:
        raise InputError("The number is out of the ledger's tables, and not out of its files yet")


@command
def purge(args: Namespace, store: LedgerBackend) -> None:
    """Forget campaigns without recent activity, and what tasks read of balances until then."""
    from airflow_provider_sms.ledger.purge import kept_words, old_campaigns
    from airflow_provider_sms.ledger.purge import purge as purge_ledger

    before = store.clock() - args.older_than * _DAY
    found = old_campaigns(store, before, include_waiting=args.include_waiting)
    going = [old for old in found if old.keep is None]
    campaigns, messages = counted(len(going), "campaign"), counted(sum(old.messages for old in going), "message")
    print_message(
        *kept_words(found),
        f"To be forgotten: balances, and attempts of no campaign, from before {iso(before)}, and {campaigns} with "
        f"{messages}, without activity since then",
        *([join_some([old.name for old in going])] if going else []),
        "A forgotten campaign protects nobody: a task that runs again under its name texts everybody again.",
    )
    confirm("Forget all this?", yes=args.yes)
    purged = purge_ledger(store, going, before)
    print_message(str(purged))
    if purged.in_use:
        raise InputError(*kept_words(purged.in_use))
