"""How far a task reads ahead of its sending, measured by the files of a folder that it opens."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable


class _Watched(DirFileSystem):  # type: ignore[misc] # fsspec is not typed
    """A folder of this machine.

    :param noticed: function to call with the name of each opened file.
    """

    cachable = False

    def __init__(self, path: str, noticed: Callable[[str], None]) -> None:
        super().__init__(path=path, fs=LocalFileSystem())
        self._noticed = noticed

    def open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """Open a file, and report its name."""
        self._noticed(path)
        return super().open(path, *args, **kwargs)


class WatchedFolder:
    """A source of files that records how many messages were posted when each file was opened.

    :param folder: folder of Parquet files.
    :param control: URL of the service's counters.
    """

    def __init__(self, folder: str, control: str) -> None:
        self.path = ""
        self.fs = _Watched(folder, self._opened)
        self._control = control
        self._ends: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._lock = threading.Lock()
        row = 0
        for file in sorted(Path(folder).iterdir()):
            row += pq.read_metadata(file).num_rows
            self._ends[file.name] = row

    def _opened(self, path: str) -> None:
        with urllib.request.urlopen(self._control, timeout=30) as response:  # noqa: S310 - this machine's own
            sent = json.load(response)["messages"]
        with self._lock:
            self._sent[path.rsplit("/", 1)[-1]] = sent

    def seen(self) -> dict[str, Any]:
        """Return the maximum number of rows between the end of an opened file and the messages posted by then.

        A file is read several times: to check it, and finally to send it.
        """
        return {"rows_ahead": max(self._ends[name] - sent for name, sent in self._sent.items())}
