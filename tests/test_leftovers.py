from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
from support.faults.rest import until

STARTS_A_DAEMON = """
import os, subprocess, sys
from support import leftovers

leftovers.end_with_this_process()
command = [sys.executable, "-c", "import signal, time; signal.signal({ignored}, signal.SIG_IGN); time.sleep(600)"]
print(subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL).pid, flush=True)
os.kill(os.getpid(), {number})
"""


def runs(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_tests_started_ends_with_them(number):
    """Also if they were killed, and if it is a daemon that does not stop at an interrupt."""
    code = STARTS_A_DAEMON.format(number=int(number), ignored=int(signal.SIGINT))
    environment = {name: value for name, value in os.environ.items() if name != "TESTS_THAT_STARTED_THIS"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == -number
    left = int(ran.stdout)
    try:
        until(lambda: not runs(left), seconds=30, what="it has ended")
    finally:
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
