"""The processes of the demonstration: each with a minimal environment, and none left running."""

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
"""The variables of the user's environment that a process inherits: no proxies, and no settings of another Airflow."""

PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL, for a process to end in order."""

_LOOKS = 0.05


class DemoError(Exception):
    """The demonstration cannot continue.

    :param words: what happened.
    :param log: the file with more details.
    """

    def __init__(self, words: str, log: Path) -> None:
        super().__init__(words)
        self.log = log


def environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process.

    :param home: home directory of the process, so that it writes nothing into the user's own.
    :param extra: additional variables.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "HOME": str(home), **extra}


@contextmanager
def running(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process. Leaving the context ends it and all processes that it started.

    :param log: file for the output.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands are those of this package
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the demonstration only, which then ends the process in order
        )
    try:
        yield process
    finally:
        _end(process)


def wait_until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], *, seconds: float, what: str, log: Path
) -> None:
    """Wait for a condition while a process runs.

    :param condition: function that is called repeatedly; its errors propagate.
    :param seconds: timeout.
    :param what: description of the condition, for the error.
    :param log: output of the process, for the error.
    :raises DemoError: when the process ends first, or at the timeout.
    """
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise DemoError(f"the process ended before {what}", log)
        if time.monotonic() > until:
            raise DemoError(f"timed out after {seconds:.0f} seconds, waiting until {what}", log)
        time.sleep(_LOOKS)


def finish(process: subprocess.Popen[bytes], *, seconds: float, what: str, log: Path) -> None:
    """Wait for the end of a process.

    :param seconds: timeout.
    :param what: description of the process, for the error.
    :param log: output of the process, for the error.
    :raises DemoError: when the process takes longer or fails.
    """
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise DemoError(f"{what}: timed out after {seconds:.0f} seconds", log) from None
    if status != 0:
        raise DemoError(f"{what}: exit status {status}", log)


def _end(process: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, ending)  # the session's process group: the process and all that it started
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
