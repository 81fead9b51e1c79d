"""Whether a file is one that SQLite can keep a ledger in: on a disk of this machine, and known by one name alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

NETWORK = frozenset(
    (  # noqa: SIM905  # a list would be a page
        "9p acfs afs beegfs ceph cifs coda drvfs fakeowner fuse gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 "
        "orangefs panfs prl_fs pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs"
    ).split()
)
"""File systems of other machines, also of the one that a virtual machine runs on: their locks do not do what SQLite
needs, nor is memory shared through them."""

_ESCAPE = re.compile(r"\\([0-7]{3})")
_INSTEAD = "Set [sms] ledger_path to a disk of this machine, or ledger_conn_id to a connection to PostgreSQL"


def settle_path(path: Path, mounts: str) -> Path:
    """Return the file that a path leads to, which need not be there yet.

    :param path: of the ledger, by whatever name.
    :param mounts: what Linux says in ``/proc/mounts``.
    :raises LedgerError: the file cannot be a ledger; says why, and what to do.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"The ledger's folder {path.parent} does not exist: make it, or set [sms] ledger_path")
    file = Path(os.path.realpath(path))
    if path.is_symlink() and not file.exists():
        raise LedgerError(
            f"The ledger {path} is a link to {file}, which is not there. Is its disk not mounted? Nothing was sent. "
            "Bring the file back, or remove the link where no ledger ever was"
        )
    if (kind := network_filesystem(file, mounts)) is not None:
        raise LedgerError(
            f"The ledger {path} would be on a network file system ({kind}), which cannot lock it safely. "
            f"Nothing was sent. {_INSTEAD}"
        )
    if is_mount_point(file, mounts):
        raise LedgerError(
            f"The ledger {path} is mounted as a single file. What was written last is in files beside it, which each "
            "container then has for itself, so people could be texted twice. Nothing was sent. Mount the folder that "
            "holds the file, the same for all, and never the file"
        )
    if file.exists() and (links := file.stat().st_nlink) > 1:
        raise LedgerError(
            f"The ledger {path} has {links} names (hard links). What was written last is in files that go by the name, "
            "so whoever uses another one does not see it, and people could be texted twice. Nothing was sent. Leave "
            "it one name; copy a ledger with: sqlite3 OLD '.backup NEW'"
        )
    return file


def network_filesystem(path: Path, mounts: str) -> str | None:
    """Give the type of the network file system that a path is on; None for one of this machine.

    :param path: absolute, and without links.
    :param mounts: what Linux says in ``/proc/mounts``.
    """
    best, kind = Path("/"), ""
    for point, its_kind in _mounted(mounts):
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, its_kind
    # FUSE file systems name what is behind them: fuse.sshfs, fuse.s3fs.
    return kind if kind in NETWORK or kind.startswith("fuse.") else None


def is_mount_point(path: Path, mounts: str) -> bool:
    """Return whether something is mounted at a path itself.

    :param path: absolute, and without links.
    :param mounts: what Linux says in ``/proc/mounts``.
    """
    return any(point == path for point, _ in _mounted(mounts))


def _mounted(mounts: str) -> Iterator[tuple[Path, str]]:
    for line in mounts.splitlines():
        _, where, kind, *_ = line.split(" ")
        yield Path(_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), where)), kind


def mounts_of_this_machine() -> str:
    """Read what is mounted; nothing where the system does not say."""
    try:
        return os.fsdecode(Path("/proc/mounts").read_bytes())
    except OSError:
        return ""
