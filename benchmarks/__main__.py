"""Run the benchmarks and print the figures: ``make bench``, ``python -m benchmarks --quick --only rate,large``."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from benchmarks import machine
from benchmarks.bench import Bench
from benchmarks.cases import CASES
from benchmarks.processes import WrongError
from benchmarks.sizes import FULL, QUICK
from benchmarks.table import report_of, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from benchmarks.figures import Figure
    from benchmarks.sizes import Sizes

RESULTS = Path(__file__).parent / "results"
WIDTH = 150
INTERRUPTED = 130
INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUICK_TITLE = "a quick run: every case runs with small sizes, and times are not judged"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases, print and write their figures, and return 1 if a result was wrong, 0 however slow it was."""
    asked = _parser().parse_args(arguments)
    sizes = QUICK if asked.quick else FULL
    if asked.rows:
        sizes = sizes.with_rows(asked.rows)
    if asked.runs:
        sizes = sizes.with_runs(asked.runs)
    # In a file or a pipe, rich assumes 80 columns.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for interrupting in INTERRUPTING:
        signal.signal(interrupting, _interrupt)
    facts = machine.facts()
    figures: dict[str, list[Figure]] = {}
    wrong: dict[str, str] = {}
    began = time.monotonic()
    try:
        _run(asked.only, sizes, console, figures, wrong)
    except KeyboardInterrupt:
        console.print("Interrupted: all started processes have been stopped")
        return INTERRUPTED
    facts["seconds"] = round(time.monotonic() - began)
    facts["calibration_seconds_at_the_end"] = machine.calibration()
    title = QUICK_TITLE if asked.quick else f"the costs of sending, up to {sizes.rows:,} rows"
    console.print(table_of(figures, title, judged=not asked.quick))
    for case, words in wrong.items():
        console.print(f"[bold red]{case}:[/bold red]", escape(words), soft_wrap=True)
    path = asked.json or RESULTS / f"{facts['date'].replace(':', '')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_of(figures, facts, wrong, judged=not asked.quick))
    console.print(
        f"{facts['seconds']} s on {facts['cores']} cores; ten million additions took "
        f"{facts['calibration_seconds']:.2f} s of CPU before, {facts['calibration_seconds_at_the_end']:.2f} s after; "
        f"written to {path}",
        soft_wrap=True,
    )
    return 1 if wrong else 0


def _run(
    names: Sequence[str], sizes: Sizes, console: Console, figures: dict[str, list[Figure]], wrong: dict[str, str]
) -> None:
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-benchmarks-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        bench = Bench(
            sizes, folder, stack, lambda words: console.print(f"[dim]{time.monotonic() - began:5.0f} s[/dim]  {words}")
        )
        for name in names:
            try:
                figures[name] = CASES[name](bench)
            except WrongError as error:
                wrong[name] = str(error)
            except Exception:  # noqa: BLE001 - the other cases still run
                wrong[name] = traceback.format_exc()


def _parser() -> argparse.ArgumentParser:
    def names(value: str) -> list[str]:
        if unknown := set(value.split(",")) - set(CASES):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(CASES)}")
        return value.split(",")

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use small sizes, and do not judge times")
    parser.add_argument("--only", type=names, default=[*CASES], metavar="CASE,…", help=f"some of {','.join(CASES)}")
    parser.add_argument("--rows", type=int, help=f"rows of the large table (default: {FULL.rows:,})")
    parser.add_argument("--runs", type=int, help=f"repetitions of the cheaper cases (default: {FULL.runs})")
    parser.add_argument("--json", type=Path, metavar="PATH", help="file for the figures (default: in results/)")
    return parser


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    for interrupting in INTERRUPTING:  # a second signal must not interrupt the cleanup
        signal.signal(interrupting, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
