from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.filesystem import is_mount_point, network_filesystem, settle_path

MOUNTS = r"""overlay / overlay rw 0 0
tmpfs /tmp tmpfs rw 0 0
nas:/share /srv/shared nfs4 rw 0 0
/dev/sdb /srv/shared/local ext4 rw 0 0
user@host:/ /mnt/remote\040disk fuse.sshfs rw 0 0
share /mnt/größe virtiofs rw 0 0
/dev/sdc /srv/airflow/sms_ledger.db ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/airflow/sms_ledger.db", None),
        ("/tmp/sms_ledger.db", None),
        ("/srv/shared/sms_ledger.db", "nfs4"),
        ("/srv/shared/local/sms_ledger.db", None),
        ("/srv/sharedness/sms_ledger.db", None),
        ("/mnt/remote disk/sms_ledger.db", "fuse.sshfs"),
        ("/mnt/größe/sms_ledger.db", "virtiofs"),
    ],
)
def test_a_path_is_on_what_is_mounted_nearest(path, kind):
    """The longest mount point that holds a path says what it is on."""
    assert network_filesystem(Path(path), MOUNTS) == kind


def test_a_system_that_says_nothing_is_trusted():
    """Where nothing is known of mounts, SQLite itself has to find out."""
    assert network_filesystem(Path("/x"), "") is None


SHARED = ["virtiofs", "gpfs", "9p", "vboxsf", "ocfs2", "gfs2", "fuse", "fuse.s3fs", "nfs", "cifs", "lustre"]


@pytest.mark.parametrize("kind", SHARED)
def test_what_machines_share_is_known(kind):
    """A file system of several machines, or of a virtual one and its host, is none of this machine."""
    assert network_filesystem(Path("/srv/x.db"), f"share /srv {kind} rw 0 0") == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk"])
def test_what_is_of_this_machine_is_known(kind):
    """A disk of the machine may hold the ledger."""
    assert network_filesystem(Path("/srv/x.db"), f"disk /srv {kind} rw 0 0") is None


def test_a_file_that_is_mounted_by_itself_is_known():
    """The file is a mount point; its folder, and the files beside it, are not."""
    paths = ["/srv/airflow/sms_ledger.db", "/srv/airflow/other.db", "/srv/airflow"]
    assert [is_mount_point(Path(path), MOUNTS) for path in paths] == [True, False, False]


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path):
    """By whatever name it is reached; a folder that is mounted is as it should be."""
    (tmp_path / "ledger.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "ledger.db")
    for name in ("ledger.db", "link.db"):
        with pytest.raises(LedgerError, match=r"is mounted as a single file.*Mount the folder"):
            settle_path(tmp_path / name, f"/dev/sdc {(tmp_path / 'ledger.db').resolve()} ext4 rw 0 0")
    file = (tmp_path / "ledger.db").resolve()
    assert settle_path(tmp_path / "ledger.db", f"/dev/sdc {tmp_path.resolve()} ext4 rw 0 0") == file


def test_a_link_is_followed_before_its_file_system_is_looked_at(tmp_path):
    """A link on a disk of this machine may lead to a share."""
    share, link = tmp_path / "share", tmp_path / "ledger.db"
    share.mkdir()
    (share / "ledger.db").touch()
    link.symlink_to(share / "ledger.db")
    mounts = f"disk / ext4 rw 0 0\nnas:/ {share} nfs4 rw 0 0"
    with pytest.raises(LedgerError, match=r"network file system \(nfs4\)"):
        settle_path(link, mounts)


def test_a_folder_that_is_a_link_is_followed_too(tmp_path):
    """The file need not be there yet."""
    share, link = tmp_path / "share", tmp_path / "airflow"
    share.mkdir()
    link.symlink_to(share)
    with pytest.raises(LedgerError, match="network file system"):
        settle_path(link / "ledger.db", f"nas:/ {share} nfs4 rw 0 0")


def test_a_file_has_one_path(tmp_path):
    """Whatever name leads to it, a ledger is the file that it is."""
    file, link = tmp_path / "ledger.db", tmp_path / "link.db"
    file.touch()
    link.symlink_to(file)
    names = [file, link, tmp_path / ".." / tmp_path.name / "ledger.db"]
    assert {settle_path(name, "") for name in names} == {file.resolve()}
