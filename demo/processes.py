"""The processes of the demonstration: each in an environment of its own making, none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""All that a process gets of the user's environment: settings of another Airflow, and proxies, stay outside."""

PATIENCE = 5.0
"""Seconds that a process has to end by itself when it is asked to."""

_LOOKS = 0.05


class DemoError(Exception):
    """The demonstration cannot go on.

    :param words: what happened.
    :param log: the file that says more.
    """

    def __init__(self, words: str, log: Path) -> None:
        super().__init__(words)
        self.log = log


def environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of a process.

    :param home: stands for the user's home directory, so that nothing is written there.
    :param extra: more variables.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "HOME": str(home), **extra}


@contextmanager
def running(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process, and end it and all that it started on leaving.

    :param log: gets its output.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands are those of this package
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the demonstration, which then ends the process in order
        )
    try:
        yield process
    finally:
        _end(process)


def wait_until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], *, seconds: float, what: str, log: Path
) -> None:
    """Wait until something holds, while a process runs.

    :param condition: asked again and again; what it raises passes through.
    :param seconds: how long at most.
    :param what: what is waited for, for the error.
    :param log: of the process, for the error.
    :raises DemoError: when the process ends first or the time is over.
    """
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise DemoError(f"the process ended before {what}", log)
        if time.monotonic() > until:
            raise DemoError(f"after {seconds:.0f} seconds still waiting until {what}", log)
        time.sleep(_LOOKS)


def finish(process: subprocess.Popen[bytes], *, seconds: float, what: str, log: Path) -> None:
    """Wait until a process has done its work.

    :param seconds: how long at most.
    :param what: what it does, for the error.
    :param log: its output, for the error.
    :raises DemoError: when it takes longer or fails.
    """
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise DemoError(f"{what}: not done after {seconds:.0f} seconds", log) from None
    if status != 0:
        raise DemoError(f"{what}: exit status {status}", log)


def _end(process: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, ending)  # its session's group: the process and what it started
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
