"""Programs that tests start, and processes that are known by the folder in which they work, whatever their parent."""

from __future__ import annotations

import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from support.faults.rest import POLL_SECONDS


def start(command, folder, output, **more):
    """Start a program in a folder, which Ctrl-C does not reach: this process ends it in order.

    :param output: file to which all that it prints is appended.
    :param more: further arguments of :class:`subprocess.Popen`.
    """
    with output.open("ab") as printed:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )


def said(output, characters=2000):
    """Return the last characters that a program has printed."""
    return output.read_text(errors="replace")[-characters:]


def listens(port):
    """Return whether a program on this machine accepts connections on a port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


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
