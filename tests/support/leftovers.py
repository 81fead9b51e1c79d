"""Ends what tests have started and not ended, once their process is gone: one that was killed cannot tidy up."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import uuid

import psutil

MARK = "TESTS_THAT_STARTED_THIS"
"""Variable that every program started by these tests inherits, daemons too."""
PATIENCE = 10.0
"""Seconds that a process has to end by itself."""


def end_with_this_process():
    """Mark what this process starts from now on, and let another process end what is left of it at the end."""
    if MARK in os.environ:
        return  # whatever started this process does it
    mark = uuid.uuid4().hex
    arguments = [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), __file__, str(os.getpid()), mark]
    # No Popen, which would complain at the end of this process that the other one still runs.
    silent = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    os.posix_spawn(sys.executable, arguments, os.environ, file_actions=silent, setsid=True)
    os.environ[MARK] = mark


def marked(mark):
    """Return the processes that inherited a mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found


def end_after(parent, mark):
    """Wait for the end of this process's parent, and end what it marked and left."""
    while os.getppid() == parent:
        time.sleep(0.2)
    latest = time.monotonic() + PATIENCE
    while left := marked(mark):
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.terminate() if time.monotonic() < latest else process.kill()
        psutil.wait_procs(left, timeout=1)


if __name__ == "__main__":
    end_after(int(sys.argv[1]), sys.argv[2])
