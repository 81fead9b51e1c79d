"""Run the benchmarks and print the figures: ``make bench``, ``python -m benchmarks --quick --only rate,large``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from benchmarks.bench import QUICK, Bench, Sizes
from benchmarks.cases import CASES
from benchmarks.figures import table_of
from demo.processes import INTERRUPTED, interrupt_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Figure

WIDTH = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases, print their figures, and return 1 if a result was wrong, 0 however slow it was."""
    asked = _asked(arguments)
    sizes = QUICK if asked.quick else Sizes()
    sizes = replace(sizes, rows=asked.rows or sizes.rows, runs=asked.runs or sizes.runs)
    # In a file or a pipe, rich assumes 80 columns.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    figures: dict[str, list[Figure]] = {}
    wrong = []
    began = time.monotonic()

    def tell(words: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f} s[/dim]  {words}")

    interrupt_once()
    files = tempfile.TemporaryDirectory(prefix="airflow-provider-sms-benchmarks-", ignore_cleanup_errors=True)
    try:
        with files as folder, ExitStack() as stack:
            bench = Bench(sizes, Path(folder), stack, tell)
            for name in asked.only:
                try:
                    figures[name] = CASES[name](bench)
                except Exception:  # noqa: BLE001 - the other cases still run
                    wrong.append(name)
                    console.print(f"[bold red]{name}:[/bold red]", escape(traceback.format_exc()), soft_wrap=True)
    except KeyboardInterrupt:
        tell("Interrupted: all started processes have been stopped")
        return INTERRUPTED
    title = "a quick run: times are not judged" if asked.quick else f"what sending costs, up to {sizes.rows:,} rows"
    console.print(table_of(figures, title, judged=not asked.quick))
    tell(f"wrong: {', '.join(wrong)}" if wrong else "the end")
    return 1 if wrong else 0


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use small sizes, and do not judge times")
    parser.add_argument("--only", default=",".join(CASES), metavar="CASE,…", help=f"some of {','.join(CASES)}")
    parser.add_argument("--rows", type=int, help=f"rows of the large table (default: {Sizes.rows:,})")
    parser.add_argument("--runs", type=int, help=f"repetitions of the cheaper cases (default: {Sizes.runs})")
    asked = parser.parse_args(arguments)
    asked.only = asked.only.split(",")
    if unknown := {*asked.only} - {*CASES}:
        parser.error(f"no case is named {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
