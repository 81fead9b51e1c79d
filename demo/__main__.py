"""Run the example campaign twice in a real Airflow against the sandbox, and check that it kept its promises."""

from __future__ import annotations

import secrets
import shutil
import signal
import sqlite3
import sys
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from demo.account import broken_claims, show
from demo.claims import Evidence, about_privacy, about_rows, about_second_run, about_service
from demo.processes import DemoError, wait_until
from demo.service import running_service
from demo.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from demo.account import Section

CHECKOUT = Path(__file__).parent.parent
FOLDER = CHECKOUT / ".demo"
TABLE = CHECKOUT / "dags" / "data" / "recipients.parquet"
DAG_ID = "example_sms_campaign"

LITTLE_CREDIT = 100
ENOUGH_CREDIT = 5000
SENSOR_SECONDS = 60.0
WIDTH = 110
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it: 128 plus the number of SIGINT."""


INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNREADABLE = (HTTPException, LookupError, OSError, ValueError, sqlite3.Error)
"""Errors of a service, file or database whose content is not as expected."""


def main() -> int:
    """Run the demonstration, and return the exit status: 0 when every check passed."""
    # In a file or a pipe, rich assumes 80 columns.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    started = time.monotonic()

    def tell(words: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:4.0f} s[/dim]  {words}")

    for interrupting in INTERRUPTING:
        signal.signal(interrupting, _interrupt)
    try:
        broken = demonstrate(tell, console)
    except DemoError as error:
        console.print("[bold red]The demonstration failed:[/bold red]", escape(f"{error}; see {_shown(error.log)}"))
        return 1
    except UNREADABLE as error:
        console.print("[bold red]The evidence is incomplete:[/bold red]", escape(f"{error!r}; see {_shown(FOLDER)}"))
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted: all started processes have been stopped")
        return INTERRUPTED
    if broken:
        console.print("[bold red]These checks failed:[/bold red]", *map(escape, broken), sep="\n")
        console.print(f"Logs, databases and the witness are in {_shown(FOLDER)}")
        return 1
    tell(f"Every check passed. Logs, databases and the witness are in {_shown(FOLDER)}")
    return 0


def demonstrate(tell: Callable[[str], None], console: Console) -> list[str]:
    """Run the campaign twice, and return the checks that failed.

    :param tell: function that prints a step.
    :raises DemoError: when the campaign could not be run.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True)
    FOLDER.chmod(0o700)  # the ledger, the witness and Airflow's database hold numbers
    token = secrets.token_hex(16)
    # Both runs have the same day, and so the same campaign, even at midnight.
    day = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    with running_service(FOLDER, token, LITTLE_CREDIT) as service:
        tell(f"The sandbox runs at {service.address}, with a balance of {LITTLE_CREDIT}")
        connection = {"conn_type": "sms", "host": f"{service.address}/v1", "password": token}
        workflow = Workflow(CHECKOUT, FOLDER, connection)
        workflow.migrate()
        tell(f"Airflow has its own database in {_shown(workflow.home)}")

        log = FOLDER / "run-1.log"
        with workflow.starting(DAG_ID, day, log) as process:
            tell(f"Run 1: airflow dags test {DAG_ID}")
            wait_until(
                lambda: service.read().requests > 0,
                process,
                seconds=SENSOR_SECONDS,
                what="the sensor reads the balance",
                log=log,
            )
            waiting = service.read()
            service.top_up(ENOUGH_CREDIT)
            tell(f"The balance is too low, so the sensor waits: topped up to {ENOUGH_CREDIT:,}")
        run = workflow.read(DAG_ID, day, log)
        first = Evidence.take(run, service.read(), workflow.ledger)
        tell(f"Run 1 ended: {run.state}")

        day, log = day + timedelta(minutes=1), FOLDER / "run-2.log"
        tell(f"Run 2: airflow dags test {DAG_ID}")
        with workflow.starting(DAG_ID, day, log):
            pass
        run = workflow.read(DAG_ID, day, log)
        second = Evidence.take(run, service.read(), workflow.ledger)
        tell(f"Run 2 ended: {run.state}")
    console.print()
    sections: list[Section] = [
        about_rows(first, TABLE),
        about_service(first, waiting, Decimal(ENOUGH_CREDIT)),
        about_second_run(first, second),
        about_privacy(FOLDER, token, first, second),
    ]
    for section in sections:
        show(section, console)
    return broken_claims(sections)


def _shown(path: Path) -> Path:
    return path.relative_to(CHECKOUT)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    for interrupting in INTERRUPTING:  # a second signal must not interrupt the cleanup
        signal.signal(interrupting, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
