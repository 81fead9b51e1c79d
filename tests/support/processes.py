"""Programs that tests start, and processes that are known by the folder in which they work, whatever their parent."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from support.faults.rest import POLL_SECONDS, until

STOP_SECONDS = 8.0
"""Seconds for programs to stop after a signal. The workers of a killed scheduler of Airflow never stop on their own."""


def start(command, folder, output, **more):
    """Start a program, which Ctrl-C does not reach: this process ends it in order. A file gets all that it prints."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # As in a shell's background: it would be inherited, and only SIGINT ends all processes of some programs.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with output.open("ab") as printed:
        program = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )
    program.output = output
    return program


def said(output):
    """Return what a program has printed last."""
    return output.read_text(errors="replace")[-4000:]


def await_ready(is_ready, programs, *, seconds, what):
    """Wait until programs are ready; raise RuntimeError when one of them has ended before."""

    def ready():
        for each in programs:
            if each.poll() is not None:
                raise RuntimeError(f"{each.args} ended with status {each.returncode}: {said(each.output)}")
        return is_ready()

    try:
        until(ready, seconds=seconds, what=what)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; said last: {[said(each.output) for each in programs]}") from None


def stop(programs, number, folder):
    """Stop programs by a signal, the last one first, then kill all that still works in a folder or below it."""
    for each in reversed(programs):
        if each.poll() is None:
            each.send_signal(number)
    for each in programs:
        with suppress(subprocess.TimeoutExpired):
            each.wait(STOP_SECONDS)
    kill(lambda: processes_below(folder))
    for each in programs:
        each.wait()


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


def kill(processes):
    """Kill the processes that a function returns, and those that they start meanwhile, until it returns none."""
    while left := processes():
        for each in left:
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(left, timeout=POLL_SECONDS)
