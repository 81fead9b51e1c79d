"""``airflow-sms``: the commands as a script, since Airflow before 3.2 does not offer the commands of providers."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from typing import TYPE_CHECKING, NoReturn

from airflow.cli.cli_config import GroupCommand

from airflow_provider_sms import __version__
from airflow_provider_sms.cli.console import EXIT_WRONG_USAGE, did_you_mean, printable
from airflow_provider_sms.cli.definitions import TIME_ADVICE, get_cli_commands
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow.cli.cli_config import ActionCommand

PROGRAM = "airflow-sms"


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command.

    :param argv: its arguments; None means those of the process.
    :raises SystemExit: with status 1 if the command is not done, 2 for wrong usage, or the command's own status.
    """
    (group,) = get_cli_commands()
    parser = _Parser(prog=PROGRAM, description=group.help)
    parser.add_argument("--version", action="version", version=_versions(), help="Show the versions, and exit")
    _add_commands(parser, group.subcommands)
    args = parser.parse_args(argv)
    _log_to_stderr()
    args.func(args)


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage without showing a number, and names the command that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong with it, and exit."""
        mistyped = re.search(r"^argument COMMAND: invalid choice: (['\"])(.*?)\1 ", message)
        meant = did_you_mean(mistyped[2], _paths()) if mistyped else ""
        self.print_usage(sys.stderr)
        advice = TIME_ADVICE if message.endswith(TIME_ADVICE) else ""  # the example in it is nobody's number
        told = mask_numbers_in(message.removesuffix(advice)) + advice
        self.exit(EXIT_WRONG_USAGE, f"{self.prog}: error: {printable(told)}{meant}\n")


def _paths() -> dict[str, str]:
    """Return how each command is called, by the name of the command or of the group."""
    (group,) = get_cli_commands()
    found: dict[str, str] = {}
    for command in group.subcommands:
        found[command.name] = f"{PROGRAM} {command.name}"
        if isinstance(command, GroupCommand):
            found |= {each.name: f"{PROGRAM} {command.name} {each.name}" for each in command.subcommands}
    return found


def _versions() -> str:
    from airflow import __version__ as airflow_version

    return f"airflow-provider-sms {__version__}, Apache Airflow {airflow_version}"


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
    from airflow.utils.log.logging_mixin import RedirectStdHandler

    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
            to_stderr = RedirectStdHandler("stderr")  # type: ignore[no-untyped-call]  # Airflow gives it no types
            to_stderr.setFormatter(handler.formatter)
            for mask in handler.filters:
                to_stderr.addFilter(mask)
            root.removeHandler(handler)
            root.addHandler(to_stderr)
