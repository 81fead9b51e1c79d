"""Processes with a minimal environment, of which none outlives its block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""The variables of the user's environment that a process inherits: no proxies, and no settings of another Airflow."""
PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL, for a process to end in order."""
INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it: 128 plus the number of SIGINT."""


class ProcessError(Exception):
    """A process failed, or took too long; the words have the end of its output."""


@contextmanager
def python(*arguments: str, home: Path, log: Path, settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with this process's modules; leaving the context ends it and all that it started.

    :param home: its folder and its home, so that it writes nothing into the user's own.
    :param log: file for its output.
    :param settings: environment variables beside the few that it inherits.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    path = os.pathsep.join(filter(None, sys.path))
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands are those of this package
            [sys.executable, *arguments],
            env={**inherited, "HOME": str(home), "PYTHONPATH": path, **settings},
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the caller only, which then ends the process in order
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, ending)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)


def wait(
    process: subprocess.Popen[bytes], log: Path, *, seconds: float, until: Callable[[], Any] | None = None
) -> None:
    """Wait for the end of a process without an error, or for a condition while it runs.

    :raises ProcessError: when it fails, ends before the condition holds, or takes longer.
    """
    give_up = time.monotonic() + seconds
    while True:
        status = process.poll()
        if until() if until else status == 0:
            return
        if status is not None or time.monotonic() > give_up:
            became = "takes too long" if status is None else f"ended with status {status}"
            end = log.read_text(errors="replace")[-3_000:]
            raise ProcessError(f"a process {became}; {log} ends so:\n{end}")
        time.sleep(0.05)


@contextmanager
def answering(module: str, job: Any, *, home: Path, settings: Mapping[str, str]) -> Iterator[Any]:
    """Run a module with a job, and yield what it answers by :func:`answer`; leaving the context ends it.

    :param job: what is JSON in its first argument.
    :param home: folder of its answer and its output.
    :param settings: environment variables; see :func:`python`.
    :raises ProcessError: when the process ends without an answer, or takes an hour.
    """
    home.mkdir(parents=True, exist_ok=True)
    path, log = home / "answer.json", home / "output.log"
    path.unlink(missing_ok=True)
    arguments = ("-m", module, json.dumps(job), str(path))
    with python(*arguments, home=home, log=log, settings=settings) as process:
        wait(process, log, seconds=3_600.0, until=path.exists)
        yield json.loads(path.read_bytes())


def answer(value: Any) -> None:
    """Give this process's answer, all at once."""
    path = Path(sys.argv[2])
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value))
    unfinished.rename(path)


def interrupt_once() -> None:
    """Let signals that end this process raise :class:`KeyboardInterrupt`, and a second one not disturb the cleanup."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for each in INTERRUPTING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in INTERRUPTING:
        signal.signal(each, interrupt)
