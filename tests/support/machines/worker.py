"""A Celery worker that could be on a machine of its own."""

from __future__ import annotations

import sys
from contextlib import suppress

import psutil

from support.faults.rest import READY_SECONDS, until
from support.processes import kill_below, said, start

CONCURRENCY = 2
"""Tasks that a worker runs at once."""

HOST_NAME = """
import os, socket
socket.gethostname = lambda: os.environ["SMS_TESTS_HOST_NAME"]
"""
"""The host name of the worker, as every Python process there reads it."""


class Worker:
    """A Celery worker with a host name, an AIRFLOW_HOME and a way to PostgreSQL of its own.

    :param folder: where its processes work; its name is the host name.
    :param database: relay to PostgreSQL, which the worker's processes use and no others.
    """

    def __init__(self, folder, database):
        self.name = folder.name
        self.database = database
        self._folder = folder
        self._output = folder / "worker.out"
        self._process = None
        (folder / "site").mkdir(parents=True)
        (folder / "site" / "sitecustomize.py").write_text(HOST_NAME)

    def start(self, environment):
        """Start the worker.

        :param environment: of a process of this Airflow, by its AIRFLOW_HOME and the place of PostgreSQL.
        """
        settings = environment(self._folder, (self.database.host, self.database.port))
        settings["PYTHONPATH"] = f"{self._folder}/site:{settings['PYTHONPATH']}"
        settings["SMS_TESTS_HOST_NAME"] = self.name
        # Left by one that was killed, and then the number of another process.
        (self._folder / "airflow-worker.pid").unlink(missing_ok=True)
        self._output.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "airflow", "celery", "worker", "--skip-serve-logs"),
            *("--concurrency", str(CONCURRENCY), "--celery-hostname", f"celery@{self.name}"),
            *("--without-mingle", "--without-gossip"),
        ]
        self._process = start(command, self._folder, self._output, env=settings)

    def await_ready(self):
        """Return once the worker takes tasks."""
        until(self._is_ready, seconds=READY_SECONDS, what=f"{self.name} takes tasks")

    def _is_ready(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with status {self._process.returncode}: {said(self._output)}")
        return " ready." in self._output.read_text(errors="replace")

    def tasks(self):
        """Return the living processes of its tasks: the children of those in its pool."""
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self._process.pid)
            return [process for process in main.children(recursive=True) if process.ppid() not in (main.pid, 1)]
        return []

    def kill(self):
        """Kill all its processes, those of its tasks too, as a machine does that loses its power."""
        kill_below(self._folder)
        if self._process is not None:
            self._process.wait()
