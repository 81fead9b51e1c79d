"""The checked spool: every row of a table as it was checked, in a nameless file from which plan, send and report read.

So what was checked is what is sent and reported, in memory that does not grow with the table. The file is unlinked from
the start: no other process can open it, and it is gone with this one, however that ends.
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.messages.prepared import SCHEMA, PreparedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER = 1 << 20


class CheckedSpool:
    """Checked rows, written once and read as often as needed. Close it to free its room on disk.

    :raises SourceUnavailableError: the folder for temporary files has no room; a retry may succeed.
    """

    def __init__(self) -> None:
        with _naming_folder(), tempfile.TemporaryFile(prefix="airflow-provider-sms-") as file:
            # Closed with this object, not with the file: Python warns of a file that nobody closed.
            self._descriptor = os.dup(file.fileno())
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._sink = os.fdopen(self._descriptor, "wb", buffering=_BUFFER, closefd=False)
        self._writer: pa.RecordBatchWriter | None = pa.ipc.new_stream(self._sink, SCHEMA)

    def add(self, prepared: PreparedBatch) -> None:
        """Add the rows after those that were added before.

        :raises SourceUnavailableError: as when it is made.
        """
        if self._writer is None:
            raise ValueError("the spool is finished")
        with _naming_folder():
            self._writer.write_batch(prepared.as_record_batch())

    def finish(self) -> None:
        """End writing.

        :raises SourceUnavailableError: as when it is made.
        """
        if self._writer is not None:
            with _naming_folder():
                self._writer.close()
                self._sink.flush()
            self._writer = None

    def batches(self) -> Iterator[PreparedBatch]:
        """Yield the rows in the batches and in the order in which they were added; each call starts anew."""
        first_row = 0
        with pa.PythonFile(io.BufferedReader(_Reading(self), _BUFFER), "r") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield PreparedBatch.of_record_batch(batch, first_row)
                first_row += len(batch)

    def read_at(self, position: int, size: int) -> bytes:
        """Return some bytes of the file."""
        if not self._close.alive:
            raise ValueError("the spool is closed")
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        """Free the room on disk. Nothing can be read afterwards."""
        with suppress(OSError, ValueError):
            self._sink.close()  # what is not written yet need not be
        self._close()


class _Reading(io.RawIOBase):
    """The file with a position of its own: several readers share one descriptor."""

    def __init__(self, spool: CheckedSpool) -> None:
        self._spool = spool
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # io calls it with a memoryview
        found = self._spool.read_at(self._position, len(buffer))
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)


@contextmanager
def _naming_folder() -> Iterator[None]:
    """Turn an error of the disk into one that names the folder.

    :raises SourceUnavailableError: a file cannot be created or written there.
    """
    try:
        yield
    except OSError as error:
        try:
            folder = tempfile.gettempdir()
        except OSError:  # again: a folder without room is not accepted for temporary files
            folder = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - it is named in an error alone
        raise SourceUnavailableError(
            f"The checked rows cannot be kept in {folder}, the folder for temporary files: "
            f"{error.strerror or type(error).__name__}. Nothing was sent. Make room there, a few hundred bytes a row, "
            "or set TMPDIR to a folder that has room"
        ) from None
