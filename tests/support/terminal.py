"""A person's terminal: a shell that keeps its folder, variables and environment from one command to the next."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from support.faults.rest import until
from support.leftovers import MARK
from support.processes import kill

INHERITED = ("LANG", MARK, "PATH", "TMPDIR", "TZ")
PATIENCE = 1200.0
"""Seconds that a block of commands may take: one of them installs Airflow."""
STOP_SECONDS = 60.0
"""Seconds for programs to stop when their terminal is closed."""


class Terminal:
    """A running shell with a ``~`` of its own, which begins in a folder."""

    def __init__(self, home, folder, **variables):
        real = Path.home()
        known = {name: value for name, value in os.environ.items() if name in INHERITED or name.startswith("PIP_")}
        # pip finds its settings and its cache where the developer has them.
        places = {"XDG_CONFIG_HOME": str(real / ".config"), "XDG_CACHE_HOME": str(real / ".cache")}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**places, **known, **variables, "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, code, *, until=None):
        """Run commands, and return what they print to their end, or until a line begins with some words."""
        end = f"ended {time.monotonic_ns()}"
        # Nothing that a command reads is the next command.
        self._process.stdin.write(f"{{\n{code}\n}} < /dev/null; echo; echo {end}\n")
        self._process.stdin.flush()
        said, deadline = [], time.monotonic() + PATIENCE
        while not said or not said[-1].startswith(until or end):
            try:
                said.append(self._lines.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"it did not end: {''.join(said)}") from None
            assert said[-1], f"the shell ended: {''.join(said)}"
        return "".join(said[:-1] if until is None else said)

    def hang_up(self):
        """Close the terminal's window, and return when no program runs any more."""
        os.killpg(self._process.pid, signal.SIGHUP)

        def ended():
            return {each.pid for each in self.processes()} <= {self._process.pid}

        until(ended, seconds=STOP_SECONDS, what="no program runs after SIGHUP")

    def processes(self):
        """Return the living processes of the shell's session, itself included: tasks of Airflow leave its group."""
        found = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                if os.getsid(process.pid) == self._process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def close(self):
        """End the shell, and all that runs in it."""
        kill(self.processes)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _read(self):
        with suppress(ValueError):  # it was closed
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put("")
