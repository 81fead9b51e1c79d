"""Mutation tests: run the tests against copies of the package, each with one defect."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from support.faults.mutations import MUTATIONS

ROOT = Path(__file__).parents[3]
PACKAGE = "airflow_provider_sms"
LONGEST = 900.0
"""Seconds after which a mutant's tests are ended; such a run proves nothing, and counts as a failure."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextmanager
def copied(mutation):
    """Yield a folder with a copy of package and tests, and the environment of a process that imports them from there.

    :param mutation: the defect of the copy; None for none.
    :raises ValueError: when the mutation's text is not found exactly once.
    """
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-mutant-") as name:
        folder = Path(name)
        for each in (PACKAGE, "tests"):
            shutil.copytree(ROOT / each, folder / each, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        if mutation is not None:
            mutation.apply(folder / PACKAGE)
        yield folder, {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")])}


def first_failure(mutation, rounds):
    """Run tests against a copy of the package with a mutation until one fails.

    :param mutation: None for none.
    :param rounds: arguments of pytest, one run after the other.
    :returns: the test that failed; None where none did, and an empty text where they did not end.
    """
    with copied(mutation) as (folder, environment):

        def run(*arguments):
            command = [sys.executable, *arguments]
            output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            # What a run that is ended has started, such as a server, ends by `support.leftovers`.
            return subprocess.run(command, cwd=folder, env=environment, timeout=LONGEST, check=False, **output)

        found = run("-c", f"import {PACKAGE}; print({PACKAGE}.__file__)").stdout
        if not Path(found.strip()).is_relative_to(folder):
            raise RuntimeError("the tests would not run against the copy")
        for tests in rounds:
            try:
                ran = run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)
            except subprocess.TimeoutExpired:
                return ""
            if ran.returncode:
                if (failed := _FAILED.search(ran.stdout)) is None:
                    raise RuntimeError(f"pytest ended with {ran.returncode} and no test failed:\n{ran.stdout[-2000:]}")
                return failed[1]
    return None


def main():
    """Check that the tests pass without a mutation, run every mutant, and fail if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of those to try")
    only = parser.parse_args().only
    chosen = [mutation for mutation in MUTATIONS if only in mutation.name]
    needed = dict.fromkeys(test for mutation in chosen for test in mutation.tests)
    cores = os.cpu_count() or 1
    failed = first_failure(None, [["--numprocesses", str(cores), "--dist", "loadfile", *needed]])
    if failed is not None:
        sys.exit(f"without a mutation: {failed or 'no end'}")
    survivors = 0
    with ThreadPoolExecutor(cores) as pool:
        rounds = [mutation.rounds for mutation in chosen]
        for mutation, failed in zip(chosen, pool.map(first_failure, chosen, rounds), strict=True):
            survivors += not failed
            sys.stdout.write(f"{mutation.name}: {failed or 'SURVIVED'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen)} mutants, {survivors} survived\n")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
