"""Processes with a minimal environment, of which none outlives its block."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""The variables of the user's environment that a process inherits: no proxies, and no settings of another Airflow."""
PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL, for a process to end in order."""


def environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that writes nothing into the user's own home."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "HOME": str(home), **extra}


@contextmanager
def running(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process; leaving the context ends it and all that it started."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands are those of this package
            command,
            env=env,
            cwd=cwd,
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
