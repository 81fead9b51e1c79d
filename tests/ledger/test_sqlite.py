from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event

from airflow_provider_sms.exceptions import LedgerBusyError, LedgerError
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.ledger.sqlite import mounts_of_this_machine, open_sqlite, settle_path

LOG_PRAGMAS = ("page_size", "wal_autocheckpoint")


def sql(path, statement):
    connection = sqlite3.connect(path)
    rows = connection.execute(statement).fetchall()
    connection.commit()
    connection.close()
    return rows


def test_a_commit_is_on_the_disk_before_it_returns(tmp_path):
    """The write-ahead log is synced at every commit: a claim must survive the machine."""
    store = open_sqlite(tmp_path / "ledger.db")
    with store.write(0) as connection:
        modes = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    store.close()
    assert modes == ["wal", 2]


def test_a_new_file_has_large_pages_and_an_existing_one_keeps_its_own(tmp_path):
    """A ledger of an earlier version stays as it is, and the log holds as many bytes with either size."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    sql(old, "PRAGMA page_size=4096")
    sql(old, "PRAGMA journal_mode=WAL")
    for path, page_bytes in ((old, 4096), (new, 16384)):
        for _ in range(2):
            store = open_sqlite(path)
            with store.read() as connection:
                pages = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in LOG_PRAGMAS]
            store.close()
            assert (pages[0], pages[0] * pages[1]) == (page_bytes, 32 * 1024 * 1024)


def test_one_look_is_at_one_state(tmp_path):
    """What another process commits between two statements of a look is not seen by the second: counts add up."""
    store = open_sqlite(tmp_path / "ledger.db")
    with store.read() as connection:
        count = "SELECT count(*) FROM sms_campaign"
        before = connection.exec_driver_sql(count).scalar()
        sql(tmp_path / "ledger.db", "INSERT INTO sms_campaign (name, created_at) VALUES ('spring', 0)")
        assert connection.exec_driver_sql(count).scalar() == before == 0
    store.close()


def test_no_request_is_of_a_campaign_that_is_not_there(tmp_path):
    """References are checked: SQLite does not unless each connection asks for it."""
    store = open_sqlite(tmp_path / "ledger.db")
    claim = {"campaign_id": 12345, "attempt_id": 1, "kind": "bulk", "state": "claimed", "claimed_at": 0, "deadline": 1}
    with pytest.raises(LedgerError, match="FOREIGN KEY"), store.write(0) as connection:
        store.insert_requests(connection, {**claim, "account": None}, [(100, None, None)])
    store.close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    """A ledger that cannot be opened raises, so that nothing is sent."""
    (tmp_path / "ledger.db").write_text("not a database, but long enough to be one" * 10)
    with pytest.raises(LedgerError):
        open_sqlite(tmp_path / "ledger.db")


def test_a_missing_folder_is_named(tmp_path):
    """The error for a folder that is not there names it and the setting."""
    with pytest.raises(LedgerError, match="nowhere does not exist: make it, or set"):
        open_sqlite(tmp_path / "nowhere" / "ledger.db")


def test_a_writer_waits_for_another_one_only_so_long(tmp_path):
    """A ledger that stays locked raises, and nothing is relied on."""
    store = open_sqlite(tmp_path / "ledger.db", busy_seconds=0.05)
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusyError, match=r"kept its lock for 0.05 seconds, and nothing"), store.write(0):
        pass
    other.close()
    store.close()


def test_the_opening_of_a_locked_file_is_tried_once(tmp_path, monkeypatch):
    """Whoever opens a ledger decides how long to try again: a command does not wait for as long as a task."""
    open_sqlite(tmp_path / "ledger.db").close()
    monkeypatch.setattr(Patience, "again", lambda *_: pytest.fail("The opening is tried again"))
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusyError, match=r"for 0.05 seconds"):
        open_sqlite(tmp_path / "ledger.db", busy_seconds=0.05)
    other.close()


def test_a_file_that_cannot_be_written_is_no_busy_one(tmp_path):
    """Only another writer is waited for again."""
    store = open_sqlite(tmp_path / "ledger.db")
    event.listen(store._engine, "checkout", lambda connection, *_: connection.execute("BEGIN"))
    with pytest.raises(LedgerError, match="within a transaction") as caught, store.write(0):
        pass
    assert not isinstance(caught.value, LedgerBusyError)
    store.close()


def test_what_can_be_done_without_waits_less(tmp_path):
    """Whoever writes next with the same connection waits as long as ever."""
    store = open_sqlite(tmp_path / "ledger.db", busy_seconds=60.0)
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusyError, match=r"for 0.05 seconds"), store.write(0, patience=0.05):
        pass
    other.close()
    with store.write(0) as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000
    store.close()


def test_reading_waits_for_no_writer(tmp_path):
    """A reader sees the last commit while another process writes."""
    store = open_sqlite(tmp_path / "ledger.db", busy_seconds=0.05)
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT version FROM sms_version").scalar() == SCHEMA_VERSION
    other.close()
    store.close()


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
def test_a_ledger_that_is_deleted_in_use_is_not_written_to(tmp_path, replaced, create):
    """Writing to a file that is gone would succeed, and be seen by nobody; a person may have only read it before."""
    open_sqlite(tmp_path / "ledger.db").close()
    store = open_sqlite(tmp_path / "ledger.db", create=create)
    (tmp_path / "ledger.db").unlink()
    if replaced:
        open_sqlite(tmp_path / "ledger.db").close()
    with pytest.raises(LedgerError, match="deleted or replaced"), store.write(0):
        pass
    store.close()


def test_a_ledger_that_is_gone_is_not_made_anew_by_whoever_has_it_open(tmp_path):
    """A connection that is made later in a send finds no file, and makes none."""
    store = open_sqlite(tmp_path / "ledger.db")
    store.close()
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(LedgerError), store.write(0):
        pass
    assert not (tmp_path / "ledger.db").exists()
    store.close()


def test_a_ledger_behind_a_link_is_that_file(tmp_path):
    """A link leads to the ledger that is there, and its name changes nothing."""
    (tmp_path / "disk").mkdir()
    open_sqlite(tmp_path / "disk" / "ledger.db").close()
    (tmp_path / "link.db").symlink_to(tmp_path / "disk" / "ledger.db")
    store, other = open_sqlite(tmp_path / "link.db"), open_sqlite(tmp_path / "disk" / "ledger.db")
    with store.write(0) as connection:
        connection.exec_driver_sql("INSERT INTO sms_campaign (name, created_at) VALUES ('c', 1)")
    with other.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sms_campaign").scalar() == 1
    store.close()
    other.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["disk", "link.db"]


def test_a_place_where_no_file_can_be_is_named(tmp_path):
    """Neither a folder, nor a file that nobody can make."""
    with pytest.raises(LedgerError, match=r"is a folder: set .* ledger_path to a file in it"):
        open_sqlite(tmp_path)
    with pytest.raises(LedgerError, match=r"The ledger /proc/ledger.db cannot be made: .*Set \[sms\] ledger_path"):
        open_sqlite(Path("/proc/ledger.db"))


def test_a_file_that_a_container_has_mounted_by_itself_is_refused(tmp_path):
    """Its write-ahead log would be in the container's own folder, and no other container's."""
    host, container = tmp_path / "host", tmp_path / "container"
    for folder in (host, container):
        folder.mkdir()
    open_sqlite(host / "ledger.db").close()
    (container / "ledger.db").touch()
    code = (
        "import sys, pathlib, subprocess; from airflow_provider_sms.ledger.sqlite import open_sqlite;"
        "subprocess.run(['mount', '--bind', *sys.argv[1:]], check=True);"
        "open_sqlite(pathlib.Path(sys.argv[2])).close()"
    )
    own_mounts, files = (
        ["unshare", "--mount", "--map-root-user"],
        [str(host / "ledger.db"), str(container / "ledger.db")],
    )
    try:
        subprocess.run([*own_mounts, "mount", "--bind", *files], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    ran = subprocess.run([*own_mounts, sys.executable, "-c", code, *files], check=False, capture_output=True, text=True)
    assert "is mounted as a single file" in ran.stderr
    assert "Mount the folder" in ran.stderr


def test_only_its_owner_reads_a_new_ledger(tmp_path):
    """The ledger holds everybody's number."""
    open_sqlite(tmp_path / "ledger.db").close()
    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600


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
    """The longest mount point that holds a path says what it is on, and what was mounted last at one."""
    names = ("share", "share/local", "shares", "hidden")
    for name in names:
        (tmp_path / name).mkdir()
    mounts = [(Path("/"), "overlay"), (tmp_path / "share", "nfs4"), (tmp_path / "share/local", "ext4")]
    mounts += [(tmp_path / "hidden", "nfs4"), (tmp_path / "hidden", "xfs")]
    assert [refused(tmp_path / name / "x.db", mounts) for name in names] == ["nfs4", None, None, None]


def test_a_system_that_says_nothing_is_trusted(tmp_path):
    """Where nothing is known of mounts, SQLite itself has to find out."""
    assert refused(tmp_path / "x.db", []) is None


SHARED = ["virtiofs", "gpfs", "9p", "vboxsf", "ocfs2", "gfs2", "fuse", "fuse.s3fs", "nfs", "cifs", "lustre"]


@pytest.mark.parametrize("kind", SHARED)
def test_what_machines_share_is_known(tmp_path, kind):
    """A file system of several machines, or of a virtual one and its host, is none of this machine."""
    assert refused(tmp_path / "x.db", [(tmp_path, kind)]) == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk"])
def test_what_is_of_this_machine_is_known(tmp_path, kind):
    """A disk of the machine may hold the ledger."""
    assert refused(tmp_path / "x.db", [(tmp_path, kind)]) is None


def test_the_mounts_of_this_machine_are_known(monkeypatch):
    """As the kernel lists them, with blanks and line breaks in names; a system that lists none tells none."""
    assert dict(mounts_of_this_machine())[Path("/proc")] == "proc"
    monkeypatch.setattr(Path, "read_bytes", lambda _: rb"user@host:/ /mnt/remote\040disk fuse.sshfs rw 0 0")
    assert mounts_of_this_machine() == [(Path("/mnt/remote disk"), "fuse.sshfs")]

    def hidden(_):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", hidden)
    assert mounts_of_this_machine() == []


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path):
    """By whatever name it is reached; a folder that is mounted is as it should be."""
    (tmp_path / "ledger.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "ledger.db")
    for name in ("ledger.db", "link.db"):
        with pytest.raises(LedgerError, match=r"is mounted as a single file.*Mount the folder"):
            settle_path(tmp_path / name, [((tmp_path / "ledger.db").resolve(), "ext4")])
    file = (tmp_path / "ledger.db").resolve()
    assert settle_path(tmp_path / "ledger.db", [(tmp_path.resolve(), "ext4")]) == file


def test_a_link_is_followed_before_its_file_system_is_looked_at(tmp_path):
    """A link on a disk of this machine may lead to a share."""
    share, link = tmp_path / "share", tmp_path / "ledger.db"
    share.mkdir()
    (share / "ledger.db").touch()
    link.symlink_to(share / "ledger.db")
    mounts = [(Path("/"), "ext4"), (share, "nfs4")]
    with pytest.raises(LedgerError, match=r"network file system \(nfs4\)"):
        settle_path(link, mounts)


def test_a_folder_that_is_a_link_is_followed_too(tmp_path):
    """The file need not be there yet."""
    share, link = tmp_path / "share", tmp_path / "airflow"
    share.mkdir()
    link.symlink_to(share)
    with pytest.raises(LedgerError, match="network file system"):
        settle_path(link / "ledger.db", [(share, "nfs4")])


def test_a_file_has_one_path(tmp_path):
    """Whatever name leads to it, a ledger is the file that it is."""
    file, link = tmp_path / "ledger.db", tmp_path / "link.db"
    file.touch()
    link.symlink_to(file)
    names = [file, link, tmp_path / ".." / tmp_path.name / "ledger.db"]
    assert {settle_path(name, []) for name in names} == {file.resolve()}
