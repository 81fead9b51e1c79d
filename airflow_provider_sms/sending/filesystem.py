"""Whether a file is on a disk of this machine."""

from __future__ import annotations

from pathlib import Path

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs"})
"""File systems of other machines: their locks do not do what SQLite needs."""


def network_filesystem(path: Path, mounts: str) -> str | None:
    """Give the type of the network file system that a path is on; None for one of this machine.

    :param path: absolute.
    :param mounts: what Linux says in ``/proc/mounts``.
    """
    best, kind = Path("/"), ""
    for line in mounts.splitlines():
        _, where, its_kind, *_ = line.split(" ")
        point = Path(where.encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, its_kind
    # FUSE file systems name what is behind them: fuse.sshfs, fuse.s3fs.
    return kind if kind in NETWORK or kind.startswith("fuse.") else None


def mounts_of_this_machine() -> str:
    """Read what is mounted; nothing where the system does not say."""
    try:
        return Path("/proc/mounts").read_text(encoding="utf-8")
    except OSError:
        return ""
