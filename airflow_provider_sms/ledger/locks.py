"""The numbers of the locks under which transactions follow one another, all in one place, so that none is used twice.

PostgreSQL takes them as advisory locks; SQLite has one lock for everything. Workers of two versions of this package may
share a ledger and wait for each other only under the same numbers, so no number here ever changes.
"""

from __future__ import annotations

from hashlib import blake2b

CREATION_LOCK = 0x5355_4D53
"""Held while tables are created or migrated: the first two tasks must not do so at once."""

REGISTER_LOCK = 0x5355_4D54
"""Held while an attempt is registered, before it knows its campaign."""

ADOPTION_LOCK = 0x5355_4D56
"""Held while a person adopts a ledger for a task instance, which need not have a campaign there."""

CLAIMANT_LOCK = 0x5355_4D57
"""Held while a purge deletes attempts, which belong to no campaign any more."""

BALANCE_LOCK = 0x5355_4D59
"""Held while a balance is recorded: it belongs to an account, and to no campaign."""

PROGRESS_LOCKS = 0x5355_4D58 << 32
"""Upper half of the numbers of :func:`progress_lock`."""


def campaign_lock(name: str) -> int:
    """Return the number under which the transactions on a campaign follow one another: 64 bits, signed.

    On PostgreSQL, commits that write no rows but those of their own requests share it: they follow all others, and run
    beside each other.
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def progress_lock(claimant_id: int) -> int:
    """Return the number for an attempt's progress: its own, since the campaign's would make it wait for claims."""
    return PROGRESS_LOCKS | claimant_id & 0xFFFF_FFFF
