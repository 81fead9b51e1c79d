"""A run of pytest in a process of its own, as in a team's CI: it knows no Airflow yet."""

from __future__ import annotations

import os
import subprocess
import sys


def run_pytest(folder, *arguments, **environment):
    """Run pytest in a folder, and return its exit status and what it printed.

    :param environment: variables in place of those of Airflow that this process has.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**clean, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
