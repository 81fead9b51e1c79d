"""How the commands speak: data on stdout, everything else on stderr, and an exit status that scripts can use."""

from __future__ import annotations

import functools
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import SmsError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

NOT_DONE = 1


class NotConfirmedError(SmsError):
    """Nobody said yes."""


def command(function: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """Have a command end with status 1 and its error's words, not with a traceback, when it is not done.

    It is not Airflow's ``action_cli``, which keeps the command line, with a number in it, in Airflow's database.
    """

    @functools.wraps(function)
    def run(args: Namespace) -> None:
        try:
            function(args)
        except SmsError as error:
            note(str(error))
            raise SystemExit(NOT_DONE) from None

    return run


def show(rows: Sequence[dict[str, Any]], output: str) -> None:
    """Print data in the form that ``--output`` names."""
    from airflow.cli.simple_table import AirflowConsole

    # Names are the user's: "[x]" in one is no style, and ":x:" no emoji.
    AirflowConsole(markup=False, emoji=False).print_as(data=list(rows), output=output)


def note(words: str) -> None:
    """Print words for a person, where they are in no reader's way."""
    print(words, file=sys.stderr)  # noqa: T201  # a command speaks


def confirm(question: str, *, yes: bool) -> None:
    """Go on only where a person at the terminal, or ``--yes``, says so.

    :raises NotConfirmedError: where not.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmedError("Nothing was done: there is no terminal to ask at. Say --yes to confirm")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201  # a command speaks
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("Nothing was done")


def utc(seconds: float | None) -> str | None:
    """Write a time as ISO 8601, UTC.

    :param seconds: since the epoch; None where there is none.
    """
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def counted(count: int, thing: str) -> str:
    """Write a count with its noun: ``1 message``, ``2 messages``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
