"""The witness: a file that holds every accepted message before the client receives the response.

A module of its own, however short: the file's promises rest on one write and one fsync per request.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class Witness:
    """A file of JSON lines that survives the sandbox, however the sandbox ends.

    :param path: the file. An existing file is appended to. A new one, which will hold numbers and texts, is readable
        by its owner only.
    :raises OSError: when the file cannot be opened for writing.
    """

    def __init__(self, path: Path | str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o600)

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Append one line per entry, and return once the lines are on the disk.

        :param entries: the entries, written together and followed by one fsync.
        :raises OSError: when the file cannot be written.
        """
        lines = memoryview(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
        while lines:
            lines = lines[os.write(self._descriptor, lines) :]  # a disk that fills up takes only some of the bytes
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
