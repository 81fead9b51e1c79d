"""``airflow-sms``: the commands as a script, since Airflow before 3.2 does not offer the commands of providers."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow.cli.cli_config import GroupCommand

from airflow_provider_sms.cli.definitions import get_cli_commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow.cli.cli_config import ActionCommand


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command.

    :param argv: its arguments; None means those of the process.
    :raises SystemExit: with status 1 if the command is not done, 2 for wrong usage.
    """
    parser = argparse.ArgumentParser(prog="airflow-sms", description="Inspect and manage campaigns of text messages")
    (group,) = get_cli_commands()
    _add_commands(parser, group.subcommands)
    args = parser.parse_args(argv)
    _log_to_stderr()
    args.func(args)


def _add_commands(parser: argparse.ArgumentParser, commands: Iterable[ActionCommand | GroupCommand]) -> None:
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        description = command.description or command.help
        command_parser = subparsers.add_parser(command.name, help=command.help, description=description)
        if isinstance(command, GroupCommand):
            _add_commands(command_parser, command.subcommands)
        else:
            for argument in command.args:
                argument.add_to_parser(command_parser)
            command_parser.set_defaults(func=command.func)


def _log_to_stderr() -> None:
    """Keep stdout for data, as Airflow's own commands do from Airflow 3.3 on."""
    with suppress(ImportError):
        from airflow.cli.utils import redirect_stdout_log_handlers_to_stderr

        redirect_stdout_log_handlers_to_stderr()
