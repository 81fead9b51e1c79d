"""What is left of deleted rows outside the ledger's tables, and removing it.

SQLite overwrites deleted rows with zeros, first in its write-ahead log. Until that log is moved into the file, the file
still has the old pages, and the log may have older copies of them. PostgreSQL only marks deleted rows.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sms.ledger.backend import LedgerBackend

PATIENCE_SECONDS = 10.0
"""Seconds to wait for the processes that need the log: most of them need it for the length of a transaction."""

_SMALL = 1 << 47
"""SQLite stores a positive integer below this, and of 2^31 or more, in 6 bytes; from here on in 8."""


class Remains(NamedTuple):
    """What is left of deleted rows.

    :param is_gone: whether nothing is left in the ledger's own files; None where a server keeps them.
    :param words: the same for people, as one sentence or two.
    """

    is_gone: bool | None
    words: str


def remove_remains(store: LedgerBackend) -> Remains:
    """Remove what is left of deleted rows, as far as this process may.

    :raises LedgerError: when the ledger cannot be written to.
    """
    is_gone = store.empty_log(PATIENCE_SECONDS)
    if is_gone is None:
        return Remains(
            is_gone=None,
            words="PostgreSQL keeps deleted rows until VACUUM has removed them, and their bytes until it uses the "
            "space again; VACUUM FULL writes the tables anew. Archived WAL and backups keep them as long as you do",
        )
    if is_gone:
        return Remains(
            is_gone=True,
            words="Deleted rows are overwritten with zeros in the ledger's file, and its -wal file is emptied",
        )
    return Remains(
        is_gone=False,
        words="Deleted rows are still in the ledger's file or in the -wal file beside it, because another process "
        "reads or writes there. Run the command again when nothing sends, or close the program that reads",
    )


def files_with_number(path: Path, digits: str) -> list[Path]:
    """Return the files of a ledger in SQLite whose bytes hold a number: as an integer of a row, or as text.

    The bytes of an integer may be there by accident, about once in 500,000 ledgers of 500 MB; the digits may be part of
    a longer number. Text with signs between the digits is not found, nor is the integer of a number below 2^31: SQLite
    stores it in so few bytes that they would be there by accident in any large ledger.

    Call it when this process has closed the ledger: closing any file drops every lock that the process has on it.

    :param path: the ledger's file; the files beside it are searched, too.
    :param digits: with country code.
    """
    number = int(digits)
    written = (number.to_bytes(6 if number < _SMALL else 8, "big"), digits.encode())
    return [
        file for end in ("", "-wal") if (file := path.with_name(path.name + end)).is_file() and _has_any(file, written)
    ]


def _has_any(file: Path, wanted: tuple[bytes, ...]) -> bool:
    with file.open("rb") as opened:
        if not file.stat().st_size:
            return False
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(each) >= 0 for each in wanted)
