"""Processes with a minimal environment, none of which outlives its block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from demo.processes import environment, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

LOG_CHARACTERS = 3_000
_LOOKS = 0.05


class WrongError(Exception):
    """The measured code produced a wrong result, which makes its times meaningless."""


@contextmanager
def python(
    folder: Path, *arguments: str, log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with this process's modules and little of its environment.

    :param folder: working directory and home directory.
    :param log: file for the output.
    :param settings: additional environment variables.
    """
    path = os.pathsep.join(filter(None, sys.path))
    env = environment(folder, {"PYTHONPATH": path, "PYTHONHASHSEED": "0", **(settings or {})})
    with running([sys.executable, *arguments], env=env, cwd=folder, log=log) as process:
        yield process


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, *, seconds: float) -> None:
    """Wait for a condition while a process runs.

    :raises WrongError: when the process ends first, or at the timeout.
    """
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > until:
            raise WrongError(f"a process ended, or took too long: {end_of(log)}")
        time.sleep(_LOOKS)


def run_job(
    folder: Path, module: str, job: Any, *, settings: Mapping[str, str] | None = None, seconds: float = 3600.0
) -> Any:
    """Run ``python -m module JOB RESULT`` in a new process, and return its result.

    :param folder: folder for the job, the result and the output.
    :param job: the job, passed as JSON, as is the result.
    :raises WrongError: when the process fails or takes longer, with the end of its output.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given, result, log = folder / "job.json", folder / "result.json", folder / "output.log"
    given.write_text(json.dumps(job))
    result.unlink(missing_ok=True)
    with python(folder, "-m", module, str(given), str(result), log=log, settings=settings) as process:
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise WrongError(f"{module} took longer than {seconds:.0f} s: {end_of(log)}") from None
    if status or not result.exists():
        raise WrongError(f"{module} ended with status {status}: {end_of(log)}")
    return json.loads(result.read_bytes())


def put(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value))
    unfinished.rename(path)


def end_of(log: Path) -> str:
    """Return the end of a process's output."""
    return log.read_text(errors="replace")[-LOG_CHARACTERS:]
