"""Run the tests three times in random order, the second time beside a load on every core.

``PYTHONPATH=tests:. python -m support.shuffled [--seed SEED] [ARGUMENT OF PYTEST ...]``. The status is 0 only if all
three runs are green. The seed that each run prints repeats its order.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext

LOADED = (False, True, False)
"""The runs, and whether other processes keep every core busy meanwhile."""
ANSI = re.compile(r"\x1b\[[\d;]*m")


def main(arguments=None):
    """Run them, and return the status."""
    parser = argparse.ArgumentParser(prog="support.shuffled", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the first run")
    options, given = parser.parse_known_args(arguments)
    closing = []
    for number, loaded in enumerate(LOADED):
        with load() if loaded else nullcontext():
            status, last = run(["--shuffle", str(options.seed + number), *given])
        beside = "beside a load on every core" if loaded else "alone"
        closing.append((status, f"--shuffle {options.seed + number}, {beside}: {last}"))
    for status, line in closing:
        sys.stdout.write(f"{'red  ' if status else 'green'} {line}\n")
    return max(status for status, _ in closing)


def run(arguments):
    """Run pytest, and return its status and its closing line; its output is printed as it comes."""
    command = [sys.executable, "-m", "pytest", *arguments]
    sys.stdout.write(f"== {' '.join(command[1:])}\n")
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            last = ANSI.sub("", line).strip("= \n") or last
    return process.returncode, last


@contextmanager
def load():
    """Keep every core busy."""
    busy = [multiprocessing.Process(target=_spin, args=(os.getpid(),)) for _ in range(os.cpu_count() or 1)]
    for each in busy:
        each.start()
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.join()


def _spin(parent):
    """Keep one core busy until the parent has ended, however it ended."""
    while os.getppid() == parent:
        pass


if __name__ == "__main__":
    sys.exit(main())
