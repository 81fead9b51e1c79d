from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sms.sending.filesystem import network_filesystem

MOUNTS = r"""overlay / overlay rw 0 0
tmpfs /tmp tmpfs rw 0 0
nas:/share /srv/shared nfs4 rw 0 0
/dev/sdb /srv/shared/local ext4 rw 0 0
user@host:/ /mnt/remote\040disk fuse.sshfs rw 0 0
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
    ],
)
def test_a_path_is_on_what_is_mounted_nearest(path, kind):
    """The longest mount point that holds a path says what it is on."""
    assert network_filesystem(Path(path), MOUNTS) == kind


def test_a_system_that_says_nothing_is_trusted():
    """Where nothing is known of mounts, SQLite itself has to find out."""
    assert network_filesystem(Path("/x"), "") is None
