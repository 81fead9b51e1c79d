from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
from support.faults.rest import until
from support.faults.standalone import environment
from support.leftovers import MARK
from support.terminal import Terminal

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
    clean = {name: value for name, value in os.environ.items() if name != MARK}
    clean["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    ran = subprocess.run([sys.executable, "-c", code], env=clean, check=False, timeout=60, **said)
    assert ran.returncode == -number
    left = int(ran.stdout)
    try:
        until(lambda: not runs(left), seconds=30, what="it has ended")
    finally:
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


def test_what_has_an_environment_of_its_own_is_known_too(tmp_path):
    """An Airflow, and a person's shell, have the mark of these tests."""
    terminal = Terminal(tmp_path, tmp_path)
    said = terminal.run(f"echo ${MARK}")
    terminal.close()
    assert environment(tmp_path, "")[MARK] == said.strip() == os.environ[MARK]
