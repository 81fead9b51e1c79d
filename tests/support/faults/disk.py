"""A disk that fails under a send: ``strace`` watches the system calls of a process or lets them fail; or it is full."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from support.faults.arena import Arena
from support.faults.tries import Campaign, Ledgers, attempt

SECONDS = 120.0
CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink,sendto"
ROOM = 2**24
"""Bytes of a disk that is soon full."""
_CALL = re.compile(r"^\d+ +(\w+)\((?:\d+<([^>]*)>)?(.*)$")
_RESUMED = re.compile(r"^\d+ +<\.\.\. f(?:data)?sync resumed>")
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def strace(*options):
    """Return the beginning of a command whose threads are watched."""
    return [str(shutil.which("strace")), "-f", "-qq", *options]


def command(campaign):
    """Return the command of a process that sends a campaign, two requests at a time."""
    of_it = (campaign.ledgers.url.database, campaign.base_url, campaign.name, campaign.start, campaign.count)
    return [sys.executable, "-m", __name__, *map(str, of_it)]


def run(arguments):
    """Run a process to its end, and return the name of the error that ended its attempt; empty where none did."""
    # It imports the package under test, wherever that is installed.
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=SECONDS, env=here)
    return ran.stdout.strip()


class Disk:
    """A folder's files as programs see them, and as they would be after a power cut.

    :param folder: as it is before the process begins.
    """

    def __init__(self, folder):
        self._synced = {str(each): each.read_bytes() for each in folder.iterdir()}
        self._written = {path: bytearray(content) for path, content in self._synced.items()}
        self._syncing = {}
        """The file that a thread waits for."""

    def claims_at_posts(self, trace):
        """Yield for each POST how many claims a power cut at that moment would have left in the ledger.

        :param trace: of :data:`CALLS`, with ``-y -xx``.
        """
        for line in trace.read_text().splitlines():
            thread = line.split(" ", 1)[0]
            if _RESUMED.match(line):
                self._sync(self._syncing.pop(thread, None))
            elif found := _CALL.match(line):
                call, path, rest = found[1], _decoded(found[2] or "").decode(), found[3]
                if call == "sendto" and _data(rest).startswith(b"POST"):
                    yield self._claims()
                elif call in ("fdatasync", "fsync"):
                    self._syncing[thread] = path
                    if "unfinished" not in rest:
                        self._sync(self._syncing.pop(thread))
                else:
                    self._change(call, path, rest)

    def _change(self, call, path, rest):
        file = self._written.setdefault(path, bytearray())
        if call == "pwrite64":
            data, at = _data(rest), int(re.findall(r", (\d+)", rest)[1])
            file.extend(bytes(max(0, at + len(data) - len(file))))
            file[at : at + len(data)] = data
        elif call == "ftruncate":
            del file[int(re.findall(r", (\d+)", rest)[0]) :]
        elif call == "unlink":
            for files in (self._written, self._synced):
                files.pop(_data(rest).decode(), None)

    def _sync(self, path):
        if path in self._written:
            self._synced[path] = bytes(self._written[path])

    def _claims(self):
        with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-disk-") as name:
            for path, content in self._synced.items():
                if not path.endswith("-shm"):  # which is made anew
                    (Path(name) / Path(path).name).write_bytes(content)
            with closing(sqlite3.connect(Path(name) / "ledger.db")) as ledger:
                return int(ledger.execute("SELECT count(*) FROM sms_message").fetchone()[0])


def _data(text):
    found = _BYTES.search(text)
    return b"" if found is None else _decoded(found[1])


def _decoded(hexadecimal):
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def fill(folder, *, left):
    """Send with a ledger on a disk that has so many bytes left, then the rest with all of it, and judge.

    :param folder: where a small disk is mounted.
    """
    with Arena(Ledgers.in_file(folder / "ledger.db")) as arena:
        campaign = arena.campaign(400)
        (folder / "other").write_bytes(bytes(shutil.disk_usage(folder).free - left))
        ended = attempt(campaign, concurrency=2)
        (folder / "other").unlink()
        arena.look(campaign, ended)
        arena.resume("a full disk", campaign)
    print("nothing" if ended.error is None else type(ended.error).__name__)  # noqa: T201  # the parent reads this
    return arena.figures


def full_disk(folder, left):
    """Return the command that mounts a small disk on a folder, for itself alone, and fills it under a send."""
    mount = f'mount -t tmpfs -o size={ROOM} none "$0" && exec "$@"'
    command = [sys.executable, "-m", __name__, str(folder), str(left)]
    return ["unshare", "--mount", "sh", "-c", mount, str(folder), *command]


def _main(arguments):
    if len(arguments) == 2:
        print(fill(Path(arguments[0]), left=int(arguments[1])).broken)  # noqa: T201  # the parent reads this
        return
    file, base_url, name, start, count = arguments
    ended = attempt(Campaign(Ledgers.in_file(Path(file)), base_url, name, int(start), int(count)), concurrency=2)
    print("" if ended.error is None else type(ended.error).__name__)  # noqa: T201  # the parent reads this


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    _main(sys.argv[1:])
