"""Mutation tests: run the tests against copies of the package, each with one defect."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from support.faults.mutations import MUTATIONS

ROOT = Path(__file__).parents[3]
PACKAGE = "airflow_provider_sms"
COPIED = (PACKAGE, "tests", "pyproject.toml")
LONGEST = 900.0
"""Seconds after which a mutant's tests are ended; such a run proves nothing, and counts as a failure."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Verdict(NamedTuple):
    """Whether the tests detected a mutant.

    :param suite: ``red``, ``green``, or ``no end``.
    :param by: the first test that failed.
    """

    suite: str
    by: str
    seconds: float


@contextmanager
def copied(mutation):
    """Yield a folder with a copy of package and tests, and the environment of a process that imports them from there.

    :param mutation: the defect of the copy; None for none.
    :raises ValueError: when the mutation's text is not found exactly once.
    """
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-mutant-") as name:
        folder = Path(name)
        for each in COPIED:
            source = ROOT / each
            if source.is_dir():
                shutil.copytree(source, folder / each, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / each)
        if mutation is not None:
            mutation.apply(folder / PACKAGE)
        yield folder, {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")])}


def try_mutant(mutation, rounds):
    """Run tests against a copy of the package with a mutation, until one fails.

    :param mutation: None shows that the tests pass without a defect.
    """
    with copied(mutation) as (folder, environment):
        began = time.monotonic()
        for tests in rounds:
            suite, by = _run(folder, environment, tests)
            if suite != "green":
                break
        return Verdict(suite, by, time.monotonic() - began)


def _run(folder, environment, tests):
    found = subprocess.run(
        [sys.executable, "-c", f"from importlib.util import find_spec; print(find_spec({PACKAGE!r}).origin)"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if not Path(found.strip()).is_relative_to(folder):
        raise RuntimeError("the tests would not run against the copy")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ran:
        try:
            output, _ = ran.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            # SIGTERM, not SIGKILL, so that the database server that it started ends with it.
            ran.send_signal(signal.SIGINT)
            _end(ran)
            return "no end", ""
    if ran.returncode == 0:
        return "green", ""
    failed = _FAILED.search(output)
    if failed is None:
        raise RuntimeError(f"pytest ended with {ran.returncode} and no test failed:\n{output[-2000:]}")
    return "red", failed[1]


def _end(process):
    try:
        process.communicate(timeout=60.0)
    except subprocess.TimeoutExpired:
        process.kill()


def main():
    """Check that the tests pass without a mutation, run every mutant, and fail if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of those to try")
    parser.add_argument("--tests", nargs="*", help="what to run in place of each mutant's own tests")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutants to try at once")
    arguments = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if arguments.only in mutation.name]
    console = Console()
    if not console.is_terminal:
        console.width = 200
    rounds = [[arguments.tests] if arguments.tests else mutation.rounds for mutation in chosen]
    needed = dict.fromkeys(test for each in rounds for tests in each for test in tests if "::" not in test)
    control = try_mutant(None, [["--numprocesses", str(arguments.processes), "--dist", "loadfile", *needed]])
    console.print(f"without a mutation: {control.suite} {control.by} in {control.seconds:.0f} s", soft_wrap=True)
    if control.suite != "green":
        return 1
    table = Table("mutant", "suite", "noticed first by", "seconds")
    survivors = 0
    with ThreadPoolExecutor(arguments.processes) as pool:
        verdicts = pool.map(try_mutant, chosen, rounds)
        for mutation, verdict in zip(chosen, verdicts, strict=True):
            survivors += verdict.suite != "red"
            console.print(f"{mutation.name}: {verdict.suite}", soft_wrap=True)
            table.add_row(mutation.name, verdict.suite, verdict.by, f"{verdict.seconds:.0f}")
    console.print(table)
    console.print(f"{len(chosen)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
