"""The witness: a file that holds every accepted message before its sender hears of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class Witness:
    """A file of JSON lines that outlives the sandbox, whatever stops it.

    :param path: the file; appended to when it exists. It holds numbers and texts: only its owner may read it.
    :raises OSError: when it cannot be opened for writing.
    """

    def __init__(self, path: Path | str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o600)

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Append one line per entry, and return when they are on the disk.

        :param entries: what to write; all of it goes out in one write and one fsync.
        :raises OSError: when it cannot be written.
        """
        lines = memoryview(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
        while lines:
            lines = lines[os.write(self._descriptor, lines) :]  # a disk that fills up takes only a part
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
