"""``airflow-sms``: the commands as a script, since Airflow before 3.2 does not offer the commands of providers."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from airflow_provider_sms.cli.definitions import get_cli_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "airflow-sms"


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command.

    :param argv: its arguments; None means those of the process.
    :raises SystemExit: with status 1 if the command is not done, 2 for wrong usage, or the command's own status.
    """
    args = _parser().parse_args(argv)
    _log_to_stderr()
    args.func(args)


def _parser() -> argparse.ArgumentParser:
    (group,) = get_cli_commands()
    parser = argparse.ArgumentParser(prog=PROGRAM, description=group.help)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in group.subcommands:
        its_parser = commands.add_parser(command.name, help=command.help, description=command.help)
        for argument in command.args:
            argument.add_to_parser(its_parser)
        its_parser.set_defaults(func=command.func)
    return parser


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
