"""The command that closes requests whose outcome is unknown: resolve.

It shows what the balance tells of them, says what the chosen outcome means, and asks for confirmation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.cli.console import command, confirm, print_message, user_name
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import MAX_LISTED, by_count, counted, iso, join_some, task_words
from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, sentences, verdict_words
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.requests import RequestRow


@command
def resolve_requests(args: Namespace, store: LedgerBackend) -> None:
    """Close unknown requests by their numbers, or all of a campaign; those that have an outcome by then keep it."""
    from airflow_provider_sms.ledger.decisions import resolve

    if bool(args.requests) == (args.campaign is not None):
        raise InputError("Give the numbers of requests, or --campaign NAME for all of a campaign")
    rows = _selected(store, args)
    if not rows:
        print_message(f"Campaign {args.campaign} has no unknown request")
        return
    state, name = (NOT_SENT, "not sent") if args.outcome == "not-sent" else (ACCEPTED, "accepted")
    _explain(rows, state)
    confirm(f"Close {counted(len(rows), 'request')} as {name}?", yes=args.yes)
    closed: list[RequestRow] = []
    messages = 0
    try:
        for row in rows:
            try:
                messages += resolve(store, row.request_id, state, user_name())
            except InputError as error:  # the response has arrived, or somebody else has decided
                print_message(str(error))
            else:
                closed.append(row)
    finally:
        # Also if the ledger fails in the middle: what is closed stays closed.
        print_message(
            f"Closed as {name}: {len(closed):,} of {counted(len(rows), 'request')}, {counted(messages, 'message')}"
        )
    if closed:
        _print_tasks_to_clear(store, closed)
    if left := len(rows) - len(closed):
        raise InputError(f"{counted(left, 'request')} could not be closed")


def _selected(store: LedgerBackend, args: Namespace) -> list[RequestRow]:
    """Return the unknown requests that the arguments name."""
    from airflow_provider_sms.ledger.campaigns import require_campaign
    from airflow_provider_sms.ledger.decisions import require_unknown
    from airflow_provider_sms.ledger.requests import named_requests, unknown_requests
    from airflow_provider_sms.monitoring.counts import counts_of

    if args.campaign is not None:
        with store.read() as connection:
            its_id = require_campaign(connection, args.campaign)
            under_way = counts_of(connection, [its_id], store.clock())[its_id].under_way
        if under_way:
            print_message(f"{counted(under_way, 'message')} that may still be under way cannot be closed yet")
        return unknown_requests(store, args.campaign)
    rows = named_requests(store, args.requests)
    for row in rows:
        require_unknown(row)
    return rows


def _print_tasks_to_clear(store: LedgerBackend, rows: Sequence[RequestRow]) -> None:
    """Print the tasks to run again, once requests are closed."""
    from airflow_provider_sms.monitoring.attempts import tasks_to_clear

    tasks = tasks_to_clear(store, rows)
    which = by_count(len(tasks), "task in Airflow, so that it runs", "tasks in Airflow, so that they run")
    print_message(f"Now clear the failed {which} again:", *(f"  {task_words(*task)}" for task in tasks))


def _explain(rows: Sequence[RequestRow], state: str) -> None:
    """Print which requests a person is about to close, what the balance tells of them, and what closing them means."""
    times = [row.claimed_at for row in rows]
    campaigns = join_some(sorted({row.campaign for row in rows}))
    messages = counted(sum(row.messages for row in rows), "message")
    print_message(
        f"{counted(len(rows), 'unknown request')} of {campaigns} with {messages}, claimed from {iso(min(times))} to "
        f"{iso(max(times))}"
    )
    if told := sentences(row.evidence for row in rows):
        print_message("What the balance tells:", *(f"  {each}" for each in told[:MAX_LISTED]))
        if len(told) > MAX_LISTED:
            print_message(f"  and {len(told) - MAX_LISTED} more: see airflow-sms unknown")
    print_message(
        f"Not sent frees {messages} for the next attempt. Anything that the service did take is sent twice."
        if state == NOT_SENT
        else f"Accepted counts {messages} as sent. Anything that the service did not take is never sent."
    )
    contrary = CHARGED if state == NOT_SENT else NOT_CHARGED
    if contradicted := [row for row in rows if row.evidence is not None and row.evidence.verdict == contrary]:
        ids, verdict = join_some([str(row.request_id) for row in contradicted]), verdict_words(contradicted[0].evidence)
        print_message(f"The balance contradicts this for {by_count(len(contradicted), 'request')} {ids}: {verdict}")
