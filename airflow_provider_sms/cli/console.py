"""Input and output of the commands: data on stdout, everything else on stderr, and an exit status for scripts.

Names and reasons are other people's words. Nothing that is printed here can control the terminal: a name could
otherwise erase the line above a question, or set the window's title.
"""

from __future__ import annotations

import functools
import getpass
import os
import socket
import sys
from contextlib import closing, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InputError, SmsError
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend

EXIT_NOT_DONE = 1


def command(
    function: Callable[[Namespace, LedgerBackend], None],
) -> Callable[[Namespace], None]:
    """Wrap a command: it gets the ledger of its arguments, and an error ends it with status 1, without a traceback.

    The ledger is never created. A campaign in the arguments becomes the name that a task which is given the same one
    would use. Airflow's audit log gets the command.
    """

    @functools.wraps(function)
    def run(args: Namespace) -> None:
        from airflow_provider_sms.hooks.ledger import open_existing_ledger
        from airflow_provider_sms.ledger.name_rules import read_name

        _log_action(function.__name__, args)
        try:
            with closing(open_existing_ledger(args.ledger_conn_id)) as store:
                if getattr(args, "campaign", None) is not None:
                    with suppress(InputError):  # no campaign has a name that is refused, as is said then
                        args.campaign = read_name(args.campaign)
                function(args, store)
        except SmsError as error:
            print_message(str(error))
            raise SystemExit(EXIT_NOT_DONE) from None

    return run


def _log_action(name: str, args: Namespace) -> None:
    """Record a command as Airflow's ``action_cli`` does, which would store a number in its arguments unmasked."""
    from airflow.utils.cli_action_loggers import on_pre_execution

    on_pre_execution(  # type: ignore[no-untyped-call]  # Airflow gives it no types
        sub_command=f"sms_{name}",
        start_datetime=datetime.now(timezone.utc),
        full_command=str([mask_numbers_in(each) for each in sys.argv]),
        user=user_name(),
        host_name=socket.gethostname(),
        dag_id=getattr(args, "dag_id", None),
        task_id=getattr(args, "task_id", None),
        logical_date=None,
    )


def user_name() -> str:
    """Return the name of the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"  # a user in a container may have no name


def print_rows(rows: Sequence[dict[str, Any]], output: str) -> None:
    """Print data in the format of ``--output``, as Airflow's own commands do: every value is a text."""
    from airflow.cli.simple_table import AirflowConsole

    if output in ("table", "plain"):  # JSON and YAML have escapes of their own
        rows = [{name: printable(str(value)) for name, value in row.items()} for row in rows]
    # Names are the users' own: "[x]" is no style in them, and ":x:" no emoji.
    AirflowConsole(markup=False, emoji=False).print_as(data=rows, output=output)


def print_message(*lines: str) -> None:
    """Print a message for a person to stderr, where no program reads it as data.

    :param lines: a line end within one of them is escaped: it is part of a name.
    """
    print(*map(printable, lines), sep="\n", file=sys.stderr)  # noqa: T201  # a command prints


def printable(text: str) -> str:
    r"""Return a text with the characters that are not printed as escapes, such as ``\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_number(written: str, default_region: str | None) -> str:
    """Return the digits, with country code, of a number in an argument of a command, or in a line of stdin.

    :param written: the number; ``-`` means the line, which appears in no shell history and no list of processes.
    :param default_region: country of a number without country code, such as ``ZA``; None means that it has one.
    :raises InputError: there is none, or it cannot be read; the error gives the reason, without the number.
    """
    from airflow_provider_sms.recipients.forms import read_region
    from airflow_provider_sms.recipients.numbers import read_number as read_cell

    if written == "-":
        if sys.stdin.isatty():
            print("Number: ", end="", file=sys.stderr, flush=True)  # noqa: T201  # a command prints
        written = sys.stdin.readline().strip()
        if not written:
            raise InputError("There is no number on stdin")
    number = read_cell(written, None if default_region is None else read_region(default_region))
    if number.digits is None:
        reason = (number.reason or "").replace("set default_region", "add --default-region")
        raise InputError(f"This number cannot be read: {reason}")
    return number.digits


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person at the terminal to confirm, unless ``--yes`` does.

    :raises SmsError: the answer is not yes, or there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise SmsError("Nothing was done: there is no terminal to ask at. Add --yes to confirm")
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201  # a command prints
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise SmsError("Nothing was done")
