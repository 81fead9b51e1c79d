"""What becomes of campaigns on several machines: ``make several-machines``."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from support.machines.engine import KINDS, running_engine
from support.machines.network import enter_namespaces, lacking
from support.machines.packages import install, missing
from support.machines.scenarios import SCENARIOS
from support.machines.stage import PEOPLE, play

WIDTH = 170
INSIDE = "--inside"


def main(arguments=None):
    """Play the selected scenarios, print a table, and return 1 if the promise was broken, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.machines", description=__doc__)
    parser.add_argument("--links", choices=KINDS, help="default: namespaces where this may be, else relays")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--people", type=int, default=PEOPLE, help=f"of each scenario (default: {PEOPLE})")
    parser.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="copy all logs there at the end")
    parser.add_argument("--list", action="store_true", help="list the scenarios, and end")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("only", nargs="*", metavar="SCENARIO", help="default: all")
    given = parser.parse_args(arguments)
    known = {each.id: each for each in SCENARIOS}
    if given.list:
        for each in SCENARIOS:
            print(f"{each.id:24} {each.name}")  # noqa: T201  # that is what it was asked for
        return 0
    if unknown := set(given.only) - set(known):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    if (absent := missing()) and (absent := install(absent)):
        parser.error(f"not installed here, and could not be installed: {', '.join(absent)}")
    why = "" if given.inside or given.links == "relays" else lacking()
    if why and given.links == "namespaces":
        parser.error(f"there can be no namespaces here: {why}")
    kind = given.links or ("relays" if why else "namespaces")
    if kind == "namespaces" and not given.inside:
        enter_namespaces([sys.executable, "-m", "support.machines", INSIDE, *(arguments or sys.argv[1:])])
    if why:
        print(f"Relays take the place of networks, since there can be no namespaces here: {why}")  # noqa: T201
    scenarios = [each for name, each in known.items() if name in given.only or not given.only]
    return _play(kind, scenarios, given)


def _play(kind, scenarios, given):
    # A process that receives SIGTERM still ends its children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console = Console(width=max(WIDTH, Console().width))
    begun = time.monotonic()
    played = []

    def announce(played):
        console.print(f"{time.monotonic() - begun:.0f} s: {_row(played)}", style="dim")

    for services, same in by_engine(scenarios):
        logs = given.keep_logs and given.keep_logs / f"from-{len(played)}"
        with _folder(logs) as folder, running_engine(kind, folder, workers=given.workers, **services) as engine:
            console.print(f"{time.monotonic() - begun:.0f} s: Airflow and {given.workers} workers run", style="dim")
            played += play(engine, same, given.people, announce, first=len(played))
    places = [each.id for each in scenarios]
    console.print(_table(kind, sorted(played, key=lambda each: places.index(each.scenario.id)), given))
    return int(any(each.is_broken for each in played))


@contextmanager
def _folder(logs):
    """Make a folder into which any user may look, and remove it at the end.

    :param logs: where to copy it to before; None means nowhere.
    """
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-machines-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        if logs:
            shutil.copytree(folder, logs, dirs_exist_ok=True)
        shutil.rmtree(folder)


def by_engine(scenarios):
    """Return scenarios that need the same engine with its arguments, so that each engine is started once.

    :param scenarios: in any order.
    """
    kinds = []
    for each in scenarios:
        if each.engine not in kinds:
            kinds.append(each.engine)
    return [(kind, [each for each in scenarios if each.engine == kind]) for kind in kinds]


def _row(played):
    ends = ["not ended" if each is None else f"{each:.0f}" for each in played.seconds]
    return (
        played.scenario.name,
        *map(str, (played.people, played.twice, played.lost, played.unknown)),
        ends[-1],
        "not ended" if played.quiet is None else f"{played.quiet:.0f}",
        played.shown,
    )


def _table(kind, played, given):
    ends = "seconds from the disturbance to the end of the last task and of its process"
    table = Table("scenario", title=f"{given.workers} workers, Celery, links: {kind}; {ends}")
    for name in ("people", "twice", "lost", "unknown", "tasks", "processes"):
        table.add_column(name, justify="right")
    table.add_column("what Airflow showed")
    for each in played:
        table.add_row(*_row(each), style="bold red" if each.is_broken else None)
    return table


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was started has ended")
