"""A file that appears under its name only when it is whole.

It holds numbers, so only its owner may read it, and a process that is killed must leave none of it behind. Where the
file system can (``O_TMPFILE``), the file has no name until it is whole, and vanishes with its process. Elsewhere it has
a hidden name and is locked by its process; the next write of the same file removes hidden files that no process has
locked.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARTIAL = ".partial"
"""Suffix of a hidden name. The leading dot hides the file from readers of its folder as a table."""
_RANDOM_BYTES = 8
"""Random bytes of a hidden name, written as hex digits: two writers of one file never choose the same name."""
_COPY_BYTES = 1 << 20
"""Bytes copied at a time to an object store."""


@contextmanager
def whole_file(path: Path | Any) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only once the block has ended without an error.

    :param path: a local path, where a link is replaced and not followed; or an object with ``open``, such as an
        ``ObjectStoragePath``, to which the file is copied at the end, since closing a file of an object store publishes
        it, however little was written.
    :raises OSError: its folder does not exist, or cannot be written to.
    """
    # A path of an object store has a file system; in older versions of Airflow it is a Path as well.
    with _copied(path) if hasattr(path, "fs") else _local(Path(path)) as file:
        yield file


@contextmanager
def _copied(path: Any) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        with path.open("wb") as there:
            shutil.copyfileobj(file, there, _COPY_BYTES)


@contextmanager
def _local(path: Path) -> Iterator[IO[bytes]]:
    _remove_partial_files(path)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(_RANDOM_BYTES)}{_PARTIAL}")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.fdopen(_create(hidden), "wb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if not hidden.exists():
                    # A link replaces nothing, so the file gets the hidden name first.
                    os.link(_own_name(file.fileno()), hidden, src_dir_fd=folder, follow_symlinks=True)
                hidden.replace(path)
            except BaseException:
                hidden.unlink(missing_ok=True)
                raise
        os.fsync(folder)
    finally:
        os.close(folder)


def _create(hidden: Path) -> int:
    """Return the descriptor of a new file, which is locked and, if possible, has no name."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # each file system has an error of its own; an unusable folder fails below, too
            descriptor = os.open(hidden.parent, os.O_WRONLY | os.O_TMPFILE, 0o600)
            if os.path.lexists(_own_name(descriptor)):
                _lock(descriptor)
                return descriptor
            os.close(descriptor)  # without /proc it could never get a name
    while True:
        descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(descriptor)
        # Before it was locked, another process may have taken it for the file of a dead process, and removed it.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _own_name(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _lock(descriptor: int) -> None:
    """Lock a file until its process ends; without locks no file is removed either, since that takes one, too."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _remove_partial_files(path: Path) -> None:
    """Remove the hidden files of a path that dead processes have left; one that cannot be removed harms no other."""
    hidden = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}{re.escape(_PARTIAL)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if hidden.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_unless_locked(entry.path)


def _remove_unless_locked(name: str) -> None:
    """Remove a regular file that no process has locked; a named pipe is left alone, and opening it never waits."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path(name).unlink()
    finally:
        os.close(descriptor)
