"""The commands that only read the ledger: list, status, unknown, who, export."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.cli.console import command, print_message, print_rows, read_number
from airflow_provider_sms.cli.existing_ledger import existing_ledger
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import at_least, by_count, counted, iso
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.reporting.balance_words import sentences, verdict_words

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.pauses import Pause
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.ledger.statistics import CampaignStatus
    from airflow_provider_sms.monitoring.models import Campaign

EXIT_UNKNOWN = 3
"""The exit status of ``unknown --exit-code`` where there are unknown requests."""
_SENTENCES = ("requests_of_unknown_cost", "paused", "sent_by")
"""Fields that a table writes as sentences, or within another field."""
_STATE_NAMES: dict[str, str] = {ACCEPTED: "accepted", UNKNOWN: "unknown", CLAIMED: "under_way", NOT_SENT: "not_sent"}


@command
def list_campaigns(args: Namespace) -> None:
    """List campaigns, newest first."""
    from airflow_provider_sms.monitoring import campaigns

    state = None if args.state is None else args.state.replace("-", " ")
    found: list[Campaign] = []
    with existing_ledger(args) as store:
        older: int | None = None
        while len(found) < args.limit:
            page = campaigns.list_campaigns(
                store, may_see=lambda _: True, state=state, limit=args.limit - len(found), before=older
            )
            found += page.campaigns
            older = page.older
            if older is None:
                break
    print_rows([_campaign_fields(each, narrow=args.output == "table") for each in found], args.output)
    if older is not None:
        latest = by_count(len(found), "this is the latest", f"these are the latest {len(found)}")
        print_message(f"There may be older ones: {latest}. List more with --limit")


def _campaign_fields(found: Campaign, *, narrow: bool) -> dict[str, Any]:
    counts = found.counts
    wide = {"left_out": counts.left_out, "under_way": counts.under_way, "parts": counts.parts, "cost": counts.cost}
    wide["requests_of_unknown_cost"] = counts.of_unknown_cost
    return {
        "campaign": found.name,
        "state": found.state,
        "created_at": iso(found.created_at),
        # Messages; the names are short, since a terminal has room for few columns.
        "accepted": counts.accepted,
        "unknown": counts.unknown,
        **({} if narrow else wide),
    }


@command
def show_status(args: Namespace) -> None:
    """Show the state of a campaign."""
    from airflow_provider_sms.ledger.campaign_names import campaign_id
    from airflow_provider_sms.ledger.pauses import pause_of
    from airflow_provider_sms.ledger.statistics import status
    from airflow_provider_sms.monitoring.campaigns import find_campaign
    from airflow_provider_sms.monitoring.reasons import reasons

    with existing_ledger(args) as store:
        found = status(store, args.campaign)
        pause = pause_of(store, args.campaign)
        campaign = find_campaign(store, campaign_id(store, args.campaign))
        now = store.clock()
    fields = _status_fields(found, None if campaign is None else campaign.state, pause)
    if args.output in ("table", "plain"):
        sent_by = [
            f"task {task.task_id} of DAG {task.dag_id} ({counted(task.runs, 'run')}, {counted(task.tries, 'attempt')})"
            for task in found.senders
        ]
        in_words = {**fields, "cost": at_least(f"{found.counts.cost}", found.counts.of_unknown_cost)}
        rows = [{"property": name, "value": value} for name, value in in_words.items() if name not in _SENTENCES]
        if pause is not None:
            rows.append({"property": "paused", "value": f"by {pause.paused_by} since {iso(pause.paused_at)}"})
        print_rows([*rows, *({"property": "sent_by", "value": task} for task in sent_by)], args.output)
    else:
        print_rows([fields], args.output)
    if campaign is not None and (told := reasons(campaign, now, _unknown_words(found, args))):
        print_message(*told)


def _unknown_words(found: CampaignStatus, args: Namespace) -> str:
    """Return what to do about requests whose outcome is unknown; empty where there are none."""
    unknown = found.requests.get(UNKNOWN, 0)
    if not unknown:
        return ""
    them = by_count(unknown, "it", "them")
    there = f" --ledger-conn-id {shlex.quote(args.ledger_conn_id)}" if args.ledger_conn_id else ""
    return (
        f"What became of {counted(unknown, 'request')} is unknown. List {them} with airflow-sms ledger unknown{there} "
        f"--campaign={shlex.quote(args.campaign)}; close {them} with airflow-sms ledger resolve{there} REQUEST "
        "--as accepted, or --as not-sent"
    )


def _status_fields(found: CampaignStatus, state: str | None, pause: Pause | None) -> dict[str, Any]:
    return {
        "campaign": found.campaign,
        "state": state,
        "messages_accepted": found.counts.accepted,
        "messages_left_out": found.counts.left_out,
        "messages_unknown": found.counts.unknown,
        "messages_under_way": found.counts.under_way,
        **{f"requests_{name}": found.requests.get(state, 0) for state, name in _STATE_NAMES.items()},
        "parts": found.counts.parts,
        "cost": found.counts.cost,
        "requests_of_unknown_cost": found.counts.of_unknown_cost,
        "first_activity": iso(found.first_activity),
        "last_activity": iso(found.last_activity),
        "decisions": found.decisions,
        "paused": None if pause is None else {"by": pause.paused_by, "since": iso(pause.paused_at)},
        "sent_by": [task._asdict() for task in found.senders],
    }


@command
def list_unknown(args: Namespace) -> None:
    """List the requests whose response was lost."""
    from airflow_provider_sms.ledger.request_queries import unknown_requests

    with existing_ledger(args) as store:
        found = unknown_requests(store, args.campaign)
        if args.read_balance and found:
            from airflow_provider_sms.cli.balance_evidence import read_balances

            read_balances(store, found)
            found = unknown_requests(store, args.campaign)
    narrow = args.output == "table"  # a terminal has room for few columns
    in_words = args.output in ("table", "plain")
    print_rows(
        [
            {
                "request": str(row.request_id),
                "campaign": row.campaign,
                "messages": row.messages,
                "claimed_at": iso(row.claimed_at),
                **({} if narrow else _attempt_fields(row)),
                "evidence": verdict_words(row.evidence) if in_words else _evidence_fields(row.evidence),
                "why": row.reason or "",
            }
            for row in found
        ],
        args.output,
    )
    if in_words and (told := sentences(row.evidence for row in found)):
        print_message("What the balance tells:", *(f"  {each}" for each in told))
    if args.exit_code and found:
        raise SystemExit(EXIT_UNKNOWN)


@command
def who_texted(args: Namespace) -> None:
    """Show when a number was texted, and by which task."""
    from airflow_provider_sms.ledger.request_queries import texted

    destination = read_number(args.destination, args.default_region)
    with existing_ledger(args) as store:
        found = texted(store, destination)
        described = store.description
    if not found:
        raise InputError(
            f"The ledger {described} has no message to this number. "
            "If a task left it out, the task's row report says why"
        )
    narrow = args.output == "table"
    print_rows([_narrow_text_fields(row) if narrow else _text_fields(row) for row in found], args.output)


def _narrow_text_fields(row: RequestRow) -> dict[str, Any]:
    """Return the fields for which a terminal has room."""
    return {
        "claimed_at": iso(row.claimed_at),
        "state": _STATE_NAMES[row.state],
        "campaign": row.campaign,
        "task": f"{row.dag_id}.{row.task_id}",
        "run_id": row.run_id,
    }


def _text_fields(row: RequestRow) -> dict[str, Any]:
    return {
        "claimed_at": iso(row.claimed_at),
        "finished_at": "" if row.finished_at is None else iso(row.finished_at),
        "state": _STATE_NAMES[row.state],
        "messages": row.messages,
        "campaign": row.campaign,
        **_attempt_fields(row),
        "request": str(row.request_id),
        "event_id": "" if row.event_id is None else str(row.event_id),
    }


@command
def export(args: Namespace) -> None:
    """Write a campaign's messages to a Parquet file."""
    from airflow_provider_sms.hooks.ledger import refuse_ledger_file
    from airflow_provider_sms.ledger.export import export_campaign
    from airflow_provider_sms.recipients.paths import require_parquet_name

    require_parquet_name(args.file, "FILE")
    refuse_ledger_file(Path(args.file), "FILE")
    with existing_ledger(args) as store:
        rows = export_campaign(store, args.campaign, Path(args.file), overwrite=args.overwrite)
    print_message(f"Wrote {counted(rows, 'message')} of campaign {args.campaign} to {args.file}")


def _evidence_fields(evidence: KeptEvidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {"verdict": evidence.verdict, "words": evidence.words, "read_at": iso(evidence.read_at)}


def _attempt_fields(row: RequestRow) -> dict[str, Any]:
    return {
        "dag_id": row.dag_id,
        "task_id": row.task_id,
        "run_id": row.run_id,
        "map_index": row.map_index,
        "try_number": row.try_number,
    }
