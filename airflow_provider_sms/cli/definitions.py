"""The commands and their arguments. Imported at each ``airflow`` call, so this module imports little."""

from __future__ import annotations

from typing import Any

from airflow.cli.cli_config import (
    ARG_DAG_ID,
    ARG_MAP_INDEX,
    ARG_OUTPUT,
    ARG_TASK_ID,
    ARG_YES,
    ActionCommand,
    Arg,
    GroupCommand,
    lazy_load_command,
    positive_int,
)


def _arg(*flags: str, **arguments: Any) -> Arg:
    return Arg(flags, **arguments)  # type: ignore[no-untyped-call]  # Airflow's own


_LEDGER = _arg(
    "--ledger-conn-id",
    metavar="ID",
    help="Airflow connection to the PostgreSQL database that holds the ledger. The default is the option "
    "ledger_conn_id of the configuration's section sms, else the file of its option ledger_path",
)
_CAMPAIGN = _arg("campaign", metavar="CAMPAIGN", help="Name of the campaign")
_NUMBER = _arg(
    "destination",
    metavar="NUMBER",
    help="The number, with a country code or with --default-region; - reads it from stdin",
)
_AT_LEAST_ONE = positive_int(allow_zero=False)  # type: ignore[no-untyped-call]  # Airflow's own
_REGION = _arg("--default-region", metavar="REGION", help="Country of a national number, for example ZA")


def get_cli_commands() -> list[GroupCommand]:
    """Return the command group ``sms``; Airflow calls this function."""
    return [GroupCommand(name="sms", help="Look after campaigns of text messages", subcommands=_commands())]


def _command(name: str, function: str, help_text: str, *args: Arg) -> ActionCommand:
    """Return a command; every one takes ``--ledger-conn-id``.

    :param function: the function's path below this package, imported when the command runs.
    """
    path = f"airflow_provider_sms.cli.{function}"
    return ActionCommand(name=name, help=help_text, func=lazy_load_command(path), args=(*args, _LEDGER))


def _commands() -> list[ActionCommand]:
    return [
        _command(
            "list",
            "read_commands.list_campaigns",
            "List campaigns, newest first",
            _arg(
                "--limit",
                type=_AT_LEAST_ONE,
                default=50,
                metavar="COUNT",
                help="List at most this many campaigns (default: 50)",
            ),
            ARG_OUTPUT,
        ),
        _command("show", "read_commands.show_campaign", "Show the state of a campaign", _CAMPAIGN, ARG_OUTPUT),
        _command(
            "unknown",
            "read_commands.list_unknown",
            "List unknown requests, whose response was lost",
            _arg("--campaign", metavar="NAME", help="List only requests of this campaign"),
            _arg(
                "--read-balance",
                action="store_true",
                help="First read the balance of each account that the requests were sent with, and record what it "
                "shows about them",
            ),
            _arg(
                "--exit-code",
                action="store_true",
                help="End with status 3 if there are unknown requests, for monitoring",
            ),
            ARG_OUTPUT,
        ),
        _command(
            "resolve",
            "resolve_command.resolve_requests",
            "Resolve unknown requests, as accepted or as not sent",
            _arg("requests", nargs="*", type=int, metavar="REQUEST", help="Number of a request, as unknown lists it"),
            _arg("--campaign", metavar="NAME", help="In place of numbers: all unknown requests of this campaign"),
            _arg(
                "--as",
                dest="outcome",
                choices=("accepted", "not-sent"),
                required=True,
                help="accepted: the service took them; not-sent: it did not, and the next attempt sends them",
            ),
            ARG_YES,
        ),
        _command(
            "who",
            "read_commands.who_texted",
            "Find out when a number was texted, and by which task",
            _NUMBER,
            _REGION,
            ARG_OUTPUT,
        ),
        _command("pause", "write_commands.pause_campaign", "Pause a campaign", _CAMPAIGN),
        _command("resume", "write_commands.resume_campaign", "Resume a paused campaign", _CAMPAIGN),
        _command(
            "forget",
            "write_commands.forget_person",
            "Forget a person's number, and keep their messages from going out again",
            _NUMBER,
            _REGION,
            ARG_YES,
        ),
        _command(
            "purge",
            "write_commands.purge",
            "Purge old campaigns and balances",
            _arg(
                "--older-than",
                type=_AT_LEAST_ONE,
                required=True,
                metavar="DAYS",
                help="Forget campaigns without activity for so many days, at least 1",
            ),
            _arg(
                "--include-waiting",
                action="store_true",
                help="Also forget campaigns with a task that waits for sending hours or credit; the task "
                "fails when it continues",
            ),
            ARG_YES,
        ),
        _command(
            "adopt",
            "write_commands.adopt_task",
            "Let a task continue with a ledger that does not know all of its earlier attempts",
            ARG_DAG_ID,
            ARG_TASK_ID,
            _arg("run_id", help="The id of the DAG run"),
            ARG_MAP_INDEX,
            ARG_YES,
        ),
    ]
