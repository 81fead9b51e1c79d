"""The commands that show what is in the ledger: list, show, unknown, who. Only ``--read-balance`` writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sms.cli.console import command, print_message, print_rows, read_number
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import at_least, by_count, counted, iso
from airflow_provider_sms.ledger.account import sentences, verdict_words

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.campaigns import Pause
    from airflow_provider_sms.monitoring.models import Campaign

EXIT_UNKNOWN = 3
"""The exit status of ``unknown --exit-code`` where there are unknown requests."""


@command
def list_campaigns(args: Namespace, store: LedgerBackend) -> None:
    """List campaigns, newest first."""
    from airflow_provider_sms.monitoring import campaigns

    found: list[Campaign] = []
    older: int | None = None
    while True:
        page = campaigns.list_campaigns(store, may_see=lambda _: True, limit=args.limit - len(found), before=older)
        found += page.campaigns
        older = page.older
        if older is None or len(found) == args.limit:
            break
    rows = [
        {
            "campaign": each.name,
            "state": each.state,
            "created_at": iso(each.created_at),
            # Messages; the names are short, since a terminal has room for few columns.
            "accepted": each.counts.accepted,
            "unknown": each.counts.unknown,
        }
        for each in found
    ]
    print_rows(rows, args.output)
    if older is not None:
        print_message(f"There may be more than the latest {len(rows)}: list them with --limit")


@command
def show_campaign(args: Namespace, store: LedgerBackend) -> None:
    """Show the state of a campaign."""
    from airflow_provider_sms.ledger.campaigns import open_pause, require_campaign
    from airflow_provider_sms.monitoring.campaigns import find_campaign
    from airflow_provider_sms.monitoring.reasons import reasons

    with store.read() as connection:
        its_id = require_campaign(connection, args.campaign)
        pause = open_pause(connection, its_id)
    if (campaign := find_campaign(store, its_id)) is None:
        raise InputError("No attempt has said anything of this campaign yet")
    fields = _campaign_fields(campaign, pause)
    if args.output in ("table", "plain"):
        rows = [
            {"property": name, "value": each}
            for name, value in fields.items()
            for each in (value if isinstance(value, list) else [value])
        ]
        print_rows(rows, args.output)
    else:
        print_rows([fields], args.output)
    if told := [each for each in (_unknown_words(campaign), *reasons(campaign, store.clock())) if each]:
        print_message(*told)


def _unknown_words(campaign: Campaign) -> str:
    """Return what to do about requests whose outcome is unknown; empty where there are none."""
    if not (unknown := campaign.counts.unknown_requests):
        return ""
    them = by_count(unknown, "it", "them")
    return (
        f"What became of {counted(unknown, 'request')} is unknown. List {them} with airflow-sms unknown --campaign; "
        f"close {them} with airflow-sms resolve, as accepted or as not-sent"
    )


def _campaign_fields(campaign: Campaign, pause: Pause | None) -> dict[str, Any]:
    counts = campaign.counts
    return {
        "campaign": campaign.name,
        "state": campaign.state,
        "accepted": counts.accepted,
        "left_out": counts.left_out,
        "unknown": counts.unknown,
        "not_sent": campaign.not_sent or 0,
        "under_way": counts.under_way,
        "unknown_requests": counts.unknown_requests,
        "parts": counts.parts,
        "cost": at_least(f"{counts.cost}", counts.of_unknown_cost),
        "created_at": iso(campaign.created_at),
        "paused": [] if pause is None else [f"by {pause.paused_by} since {iso(pause.paused_at)}"],
        "sent_by": [
            f"{each.name} of DAG {each.dag_id} in run {each.run_id}: {each.state}" for each in campaign.attempts
        ],
    }


@command
def list_unknown(args: Namespace, store: LedgerBackend) -> None:
    """List the requests whose response was lost."""
    from airflow_provider_sms.ledger.requests import unknown_requests

    found = unknown_requests(store, args.campaign)
    if args.read_balance and found:
        from airflow_provider_sms.cli.balance_evidence import read_balances

        read_balances(store, found)
        found = unknown_requests(store, args.campaign)
    rows = [
        {
            "request": row.request_id,
            "campaign": row.campaign,
            "messages": row.messages,
            "claimed_at": iso(row.claimed_at),
            "evidence": verdict_words(row.evidence),
            "why": row.reason or "",
        }
        for row in found
    ]
    print_rows(rows, args.output)
    if told := sentences(row.evidence for row in found):
        print_message("What the balance tells:", *(f"  {each}" for each in told))
    if args.exit_code and found:
        raise SystemExit(EXIT_UNKNOWN)


@command
def who_texted(args: Namespace, store: LedgerBackend) -> None:
    """Show when a number was texted, and by which task."""
    from airflow_provider_sms.ledger.requests import texted

    found = texted(store, read_number(args.destination, args.default_region))
    if not found:
        raise InputError(
            f"The ledger {store.description} has no message to this number. "
            "If a task left it out, the task's row report says why"
        )
    rows = [
        {
            "claimed_at": iso(row.claimed_at),
            "state": row.state,
            "campaign": row.campaign,
            "task": f"{row.dag_id}.{row.task_id}",
            "run_id": row.run_id,
        }
        for row in found
    ]
    print_rows(rows, args.output)
