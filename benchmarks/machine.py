"""The machine and the versions of a measurement."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from benchmarks.figures import median

PACKAGES = ("airflow-provider-sms", "apache-airflow", "pyarrow", "requests", "sqlalchemy", "urllib3")
LOOPS = 10_000_000
TIMES = 3


def facts() -> dict[str, Any]:
    """Return the machine, the versions and a calibration, on which all figures depend."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: version(name) for name in PACKAGES},
        "calibration_seconds": calibration(),
    }


def calibration() -> float:
    """Return the CPU seconds of ten million additions, the median of several runs: the machine's current speed."""
    return median([additions() for _ in range(TIMES)])


def additions() -> float:
    """Return the CPU seconds of ten million additions in one run."""
    began, total = time.process_time(), 0
    for number in range(LOOPS):
        total += number
    return time.process_time() - began
