"""The commands and their arguments, as Airflow wants them. Imported at each ``airflow`` call, so it imports little."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timezone
from typing import Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_YES, ActionCommand, Arg, GroupCommand, lazy_load_command

_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_LEAST_AGE = _SECONDS["d"]


def age(written: str) -> int:
    """Read an age such as ``36h``, ``90d`` or ``12w``.

    :returns: seconds.
    :raises argparse.ArgumentTypeError: it is none, or less than a day: a send that runs still needs what is so young.
    """
    found = re.fullmatch(r"([0-9]{1,5})([hdw])", written)
    if found is None:
        raise argparse.ArgumentTypeError(f"{written!r} is no age: write 36h, 90d or 12w")
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds < _LEAST_AGE:
        raise argparse.ArgumentTypeError("it must be a day (1d) at least: sends that run need what is younger")
    return seconds


def moment(written: str) -> datetime:
    """Read a time such as ``2026-11-22T14:30`` or ``2026-11-22T14:30:05+02:00``; without an offset it is UTC.

    :raises argparse.ArgumentTypeError: it is none, or a date alone, of which nobody could say where it ends.
    """
    try:
        # Python 3.10 does not know Z.
        found = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", written))
    except ValueError:
        found = None
    if found is None or len(written) <= len("2026-11-22"):
        raise argparse.ArgumentTypeError(f"{written!r} is no time: write 2026-11-22T14:30, in UTC")
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _arg(*flags: str, **arguments: Any) -> Arg:
    return Arg(flags, **arguments)  # type: ignore[no-untyped-call]  # Airflow's own


_LEDGER = _arg(
    "--ledger-conn-id",
    help="Airflow connection to the PostgreSQL database that holds the ledger. By default the one of the "
    "configuration, section sms, option ledger_conn_id, else the file of option ledger_path",
)
_CAMPAIGN = _arg("campaign", help="The campaign's name")
_REQUESTS = _arg(
    "requests",
    nargs="*",
    type=int,
    metavar="REQUEST",
    help="The request's number: see unknown. Or say --all",
)


def get_cli_commands() -> list[GroupCommand]:
    """Give the group ``sms`` of commands; Airflow calls this."""
    return [
        GroupCommand(
            name="sms",
            help="Look after campaigns of text messages",
            subcommands=[
                GroupCommand(
                    name="ledger",
                    help="Ask the ledger who was texted, close what is unknown, and pause a campaign",
                    subcommands=[*_reading(), *_writing()],
                )
            ],
        )
    ]


def _reading() -> list[ActionCommand]:
    return [
        ActionCommand(
            name="status",
            help="Show how a campaign stands",
            func=lazy_load_command("airflow_provider_sms.cli.read_commands.show_status"),
            args=(_CAMPAIGN, ARG_OUTPUT, _LEDGER),
        ),
        ActionCommand(
            name="unknown",
            help="List the requests whose answer was lost",
            func=lazy_load_command("airflow_provider_sms.cli.read_commands.list_unknown"),
            args=(_arg("--campaign", help="Only those of this campaign"), ARG_OUTPUT, _LEDGER),
        ),
        ActionCommand(
            name="who",
            help="Show when a number was texted, and by what",
            func=lazy_load_command("airflow_provider_sms.cli.read_commands.who_texted"),
            args=(
                _arg("destination", help="The number, with its country code or with --default-region"),
                _arg("--default-region", metavar="REGION", help="Country of a number without code, such as ZA"),
                ARG_OUTPUT,
                _LEDGER,
            ),
        ),
        ActionCommand(
            name="export",
            help="Write a campaign's messages to a Parquet file",
            func=lazy_load_command("airflow_provider_sms.cli.read_commands.export"),
            args=(
                _CAMPAIGN,
                _arg("file", metavar="FILE", help="The file to write"),
                _arg("--overwrite", action="store_true", help="Replace the file where it is there already"),
                _LEDGER,
            ),
        ),
    ]


def _writing() -> list[ActionCommand]:
    return [
        ActionCommand(
            name="resolve",
            help="Say what became of unknown requests",
            func=lazy_load_command("airflow_provider_sms.cli.write_commands.resolve_requests"),
            args=(
                _REQUESTS,
                _arg("--campaign", help="With --all: the campaign"),
                _arg("--all", action="store_true", help="All unknown requests of the campaign, after a count of them"),
                _arg("--since", type=moment, metavar="TIME", help="With --all: only those claimed then or later"),
                _arg("--until", type=moment, metavar="TIME", help="With --all: only those claimed then or earlier"),
                _arg("--reason", metavar="TEXT", help="With --all: only those with TEXT in why: see unknown"),
                _arg(
                    "--as",
                    dest="outcome",
                    choices=("accepted", "not-sent"),
                    required=True,
                    help="accepted: the service took them; not-sent: it did not, and the next try sends them",
                ),
                ARG_YES,
                _LEDGER,
            ),
        ),
        ActionCommand(
            name="adopt",
            help="Let a task go on with a ledger that does not know all of its earlier tries",
            func=lazy_load_command("airflow_provider_sms.cli.write_commands.adopt_task"),
            args=(
                _arg("dag_id", help="The DAG's id"),
                _arg("task_id", help="The task's id"),
                _arg("run_id", help="The DAG run's id"),
                _arg("--map-index", type=int, default=-1, help="The index of a mapped task"),
                ARG_YES,
                _LEDGER,
            ),
        ),
        ActionCommand(
            name="pause",
            help="Have nothing more of a campaign sent",
            func=lazy_load_command("airflow_provider_sms.cli.write_commands.pause_campaign"),
            args=(_CAMPAIGN, _LEDGER),
        ),
        ActionCommand(
            name="resume",
            help="Let a campaign that is paused go on",
            func=lazy_load_command("airflow_provider_sms.cli.write_commands.resume_campaign"),
            args=(_CAMPAIGN, _LEDGER),
        ),
        ActionCommand(
            name="purge",
            help="Forget campaigns in which nothing has happened for long",
            func=lazy_load_command("airflow_provider_sms.cli.write_commands.purge"),
            args=(
                _arg(
                    "--older-than",
                    type=age,
                    required=True,
                    metavar="AGE",
                    help="Since when nothing has happened in them: 36h, 90d or 12w, at least 1d",
                ),
                _arg(
                    "--include-waiting",
                    action="store_true",
                    help="Forget campaigns, too, of which a task waits for a person, hours or credit: it fails once it "
                    "goes on",
                ),
                ARG_YES,
                _LEDGER,
            ),
        ),
    ]
