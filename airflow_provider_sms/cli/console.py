"""Input and output of the commands: data on stdout, everything else on stderr, and an exit status for scripts."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import SmsError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

EXIT_NOT_DONE = 1


class NotConfirmedError(SmsError):
    """Nobody confirmed the command."""


def command(function: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """Wrap a command so that an error ends it with its message and status 1 in place of a traceback.

    Airflow's ``action_cli`` is not used: it stores the command line, and a number in it, in Airflow's database.
    """

    @functools.wraps(function)
    def run(args: Namespace) -> None:
        try:
            function(args)
        except SmsError as error:
            print_message(str(error))
            raise SystemExit(EXIT_NOT_DONE) from None

    return run


def print_rows(rows: Sequence[dict[str, Any]], output: str) -> None:
    """Print data in the format of ``--output``."""
    from airflow.cli.simple_table import AirflowConsole

    # Names are the user's: neither is "[x]" a style, nor ":x:" an emoji.
    AirflowConsole(markup=False, emoji=False).print_as(data=list(rows), output=output)


def print_message(message: str) -> None:
    """Print a message for a person to stderr, where no program reads it as data."""
    print(message, file=sys.stderr)  # noqa: T201  # a command prints


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person at the terminal to confirm, unless ``--yes`` does.

    :raises NotConfirmedError: the answer is not yes, or there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmedError("Nothing was done: there is no terminal to ask at. Add --yes to confirm")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201  # a command prints
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("Nothing was done")
