"""What several machines need of the system, and its installation where that may be done."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

COMMANDS = {
    "redis-server": "redis-server",
    "pgbouncer": "pgbouncer",
    "ip": "iproute2",
    "unshare": "util-linux",
    "faketime": "faketime",
}
"""Commands, and the Debian package of each."""
REQUIRED = "SMS_TESTS_NEED_MACHINES"
"""Environment variable; when it is set, a missing package fails the tests instead of skipping them."""
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def missing():
    """Return the packages whose commands are not here."""
    return [package for command, package in COMMANDS.items() if shutil.which(command, path=PATH) is None]


def clock_ahead(seconds):
    """Return the environment variables with which a process reads a clock that is ahead."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"+{seconds}",
        # What measures how long something takes stays as it is, as on a machine whose clock was set.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }


def shared_clocks():
    """Return the files that processes with another clock leave in shared memory when they are killed."""
    return set(Path("/dev/shm").glob("*faketime_s*_*"))


def skips_tests():
    """Return whether the tests that need the packages are skipped."""
    return bool(missing()) and not os.environ.get(REQUIRED)


def install(packages):
    """Install packages where this may be done, and stop the servers that they start; return those still missing."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "-qq", "update")
        _run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *packages)
        for package in packages:
            _run("service", package, "stop")
    return missing()


def _run(*command):
    # What it could not install is still missing, which is said.
    subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
