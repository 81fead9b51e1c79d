"""What this process has used."""

from __future__ import annotations

import re
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Used:
    """What something took.

    :param cpu: seconds of all threads.
    :param wall: seconds.
    """

    cpu: float
    wall: float


class Meter:
    """Measures from its making on."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_seconds(), time.perf_counter()

    def read(self) -> Used:
        """Give what was taken so far."""
        return Used(cpu_seconds() - self._cpu, time.perf_counter() - self._wall)


def cpu_seconds() -> float:
    """Give the CPU time of this process, all its threads, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def forget_peak() -> None:
    """Let :func:`peak_bytes` begin anew, where the system can; elsewhere it counts from the process's start."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Give the most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, in which Linux counts the parent's memory from before the exec.
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
