"""CPU, time and memory of this process."""

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
    """CPU and elapsed time.

    :param cpu: CPU seconds of all threads.
    :param wall: elapsed seconds.
    """

    cpu: float
    wall: float


class Meter:
    """Measures time since its creation."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_seconds(), time.perf_counter()

    def read(self) -> Used:
        """Return the time used so far."""
        return Used(cpu_seconds() - self._cpu, time.perf_counter() - self._wall)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process: all threads, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def forget_peak() -> None:
    """Reset :func:`peak_bytes` on Linux; elsewhere it counts from the start of the process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which on Linux includes the parent's memory from before the exec.
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
