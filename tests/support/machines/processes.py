"""Processes that are known by the folder in which they work, whatever their parent."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from support.faults.rest import POLL_SECONDS


def processes_below(folder):
    """Return the living processes that work in a folder or below it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            # Not by its environment: Airflow writes titles over it.
            if Path(process.cwd()).is_relative_to(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def kill_below(folder):
    """Kill all processes that work in a folder or below it, and those that they start meanwhile."""
    while left := processes_below(folder):
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=POLL_SECONDS)
