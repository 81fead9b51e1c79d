from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import event

from airflow_provider_sms.exceptions import LedgerBusyError, LedgerError
from airflow_provider_sms.ledger import sqlite
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.ledger.sqlite import mounts_of_this_machine, open_sqlite, settle_path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def open_it(path):
    """Open the ledger as one more process."""
    with ExitStack() as opened:
        yield lambda place=path, **options: opened.enter_context(closing(open_sqlite(place, **options)))


@pytest.fixture
def lock(path):
    """Take the lock of the ledger as another process does; what is returned gives it back when it is closed."""
    with ExitStack() as opened:

        def lock():
            other = opened.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            other.execute("BEGIN IMMEDIATE")
            return other

        yield lock


def test_a_commit_is_on_the_disk_before_it_returns(open_it):
    """The write-ahead log is synced at every commit: a claim must survive the machine."""
    with open_it().write(0) as connection:
        modes = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert modes == ["wal", 2]


def test_a_place_that_cannot_be_a_ledger_is_named(tmp_path, path):
    """A file that is no database, a missing folder, a folder, and a file that nobody can make: nothing is sent."""
    path.write_text("not a database, but long enough to be one" * 10)
    for place, words in (
        (path, "not a database"),
        (tmp_path / "nowhere" / "ledger.db", "nowhere does not exist: make it, or set"),
        (tmp_path, r"is a folder: set .* ledger_path to a file in it"),
        (Path("/proc/ledger.db"), r"The ledger /proc/ledger.db cannot be made: .*Set \[sms\] ledger_path"),
    ):
        with pytest.raises(LedgerError, match=words):
            open_sqlite(place)


@pytest.mark.parametrize(("busy_seconds", "patience"), [(0.05, None), (60.0, 0.05)])
def test_a_writer_waits_for_another_one_only_so_long(open_it, lock, busy_seconds, patience):
    """A ledger that stays locked raises, sooner where a write can be done without, and the next waits as ever."""
    store = open_it(busy_seconds=busy_seconds)
    other = lock()
    with (
        pytest.raises(LedgerBusyError, match=r"kept its lock for 0.05 seconds, and nothing"),
        store.write(0, patience=patience),
    ):
        pass
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT version FROM sms_version").scalar() == SCHEMA_VERSION
    other.close()
    with store.write(0) as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == busy_seconds * 1000


def test_the_opening_of_a_locked_file_is_tried_once(path, lock, monkeypatch):
    """Whoever opens a ledger decides how long to try again: a command does not wait for as long as a task."""
    open_sqlite(path).close()
    lock()
    monkeypatch.setattr(Patience, "again", lambda *_: pytest.fail("The opening is tried again"))
    with pytest.raises(LedgerBusyError, match=r"for 0.05 seconds"):
        open_sqlite(path, busy_seconds=0.05)


def test_a_file_that_cannot_be_written_is_no_busy_one(open_it):
    """Only another writer is waited for again."""
    store = open_it()
    event.listen(store._engine, "checkout", lambda connection, *_: connection.execute("BEGIN"))
    with pytest.raises(LedgerError, match="within a transaction") as caught, store.write(0):
        pass
    assert not isinstance(caught.value, LedgerBusyError)


def test_processes_that_make_the_ledger_at_once_all_open_it(tmp_path):
    """Two tasks may be the first to use a ledger at the same instant."""
    code = (
        "import sys, pathlib; from airflow_provider_sms.ledger.sqlite import open_sqlite; sys.stdin.read(1);"
        "open_sqlite(pathlib.Path(sys.argv[1])).close()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "ledger.db")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(6)]
    for process in processes:
        process.stdin.write(b"x")
        process.stdin.close()
    assert [process.wait(60) for process in processes] == [0] * 6


@pytest.mark.parametrize("create", [False, True], ids=["by a person", "by a task"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_ledger_that_is_deleted_in_use_is_not_written_to(open_it, path, replaced, create):
    """Writing to a file that is gone would succeed, and be seen by nobody; a person may have only read it before."""
    open_sqlite(path).close()
    store = open_it(create=create)
    path.unlink()
    if replaced:
        open_sqlite(path).close()
    with pytest.raises(LedgerError, match="deleted or replaced"), store.write(0):
        pass


def test_a_ledger_that_is_gone_is_not_made_anew_by_whoever_has_it_open(open_it, path):
    """A connection that is made later in a send finds no file, and makes none."""
    store = open_it()
    store.close()
    path.unlink()
    with pytest.raises(LedgerError), store.write(0):
        pass
    assert not path.exists()


def test_only_its_owner_reads_a_new_ledger(open_it, path):
    """The ledger holds everybody's number."""
    open_it()
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == dict.fromkeys(
        ["ledger.db", "ledger.db-shm", "ledger.db-wal"], 0o600
    )


@pytest.mark.parametrize("name", ["ledger.db-wal", "ledger.db-shm", "ledger.db-journal"])
@pytest.mark.parametrize("target", ["there", "not there"])
def test_numbers_are_not_written_through_a_link_beside_the_ledger(tmp_path, name, target):
    """SQLite keeps the last claims beside the ledger: a link there is refused, and nothing is written behind it."""
    aside = tmp_path / "aside"
    if target == "there":
        aside.touch()
    (tmp_path / name).symlink_to(aside)
    with pytest.raises(LedgerError):
        open_sqlite(tmp_path / "ledger.db")
    assert (aside.exists(), aside.exists() and aside.stat().st_size) == (target == "there", 0)


def refused(path, mounts):
    """Return the file system for which a path is refused; None where it is not."""
    try:
        settle_path(path, mounts)
    except LedgerError as error:
        return re.search(r"network file system \((.*)\)", str(error))[1]
    return None


def test_a_path_is_on_what_is_mounted_nearest(tmp_path):
    """The longest mount point that holds a path says what it is on, and what was mounted last at one.

    A link is followed first, be it a file or a folder; where nothing is known of mounts, SQLite itself has to find out.
    """
    names = ("share", "share/local", "shares", "hidden")
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    (tmp_path / "link.db").symlink_to(tmp_path / "share" / "ledger.db")
    mounts = [(Path("/"), "overlay"), (tmp_path / "share", "nfs4"), (tmp_path / "share/local", "ext4")]
    mounts += [(tmp_path / "hidden", "nfs4"), (tmp_path / "hidden", "xfs")]
    assert [refused(tmp_path / name / "x.db", mounts) for name in names] == ["nfs4", None, None, None]
    assert [refused(tmp_path / name, mounts) for name in ("link/x.db", "link.db")] == ["nfs4", "nfs4"]
    assert refused(tmp_path / "x.db", []) is None


SHARED = ["virtiofs", "gpfs", "9p", "vboxsf", "ocfs2", "gfs2", "fuse", "fuse.s3fs", "nfs", "cifs", "lustre"]
LOCAL = ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk"]


@pytest.mark.parametrize("kind", [*SHARED, *LOCAL])
def test_what_machines_share_is_known(tmp_path, kind):
    """A file system of several machines, or of a virtual one and its host, is none of this machine; a disk is."""
    assert refused(tmp_path / "x.db", [(tmp_path, kind)]) == (kind if kind in SHARED else None)


def test_the_mounts_of_this_machine_are_known(monkeypatch):
    """As the kernel lists them, with blanks and line breaks in names; a system that lists none tells none."""
    assert dict(mounts_of_this_machine())[Path("/proc")] == "proc"
    monkeypatch.setattr(Path, "read_bytes", lambda _: rb"user@host:/ /mnt/remote\040disk fuse.sshfs rw 0 0")
    assert mounts_of_this_machine() == [(Path("/mnt/remote disk"), "fuse.sshfs")]

    def hidden(_):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", hidden)
    assert mounts_of_this_machine() == []


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path, path, monkeypatch):
    """A container's log of it would be in a folder of its own; a file has one path, and a folder may be mounted."""
    path.touch()
    file = path.resolve()
    (tmp_path / "link.db").symlink_to(path)
    for name in (path, tmp_path / "link.db", tmp_path / ".." / tmp_path.name / "ledger.db"):
        assert settle_path(name, [(tmp_path.resolve(), "ext4")]) == file
        monkeypatch.setattr(sqlite, "mounts_of_this_machine", lambda: [(file, "ext4")])
        with pytest.raises(LedgerError, match=r"is mounted as a single file.*Mount the folder"):
            open_sqlite(name)
