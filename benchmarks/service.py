"""The stand-in of the service as a process, and its counters."""

from __future__ import annotations

import http.client
import json
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.processes import python, wait_for
from benchmarks.standin import Counters, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 30.0
CALL_SECONDS = 60.0


class Service:
    """A running stand-in.

    :param port: where it listens.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"

    def set(self, **settings: float) -> None:
        """Apply settings, and reset the counters; see :class:`Settings`."""
        self._call("PUT", "/settings", json.dumps(asdict(Settings(**settings))))

    def counters(self) -> Counters:
        """Return the counters."""
        return Counters(**self._call("GET", "/counters"))

    def distinct(self) -> int:
        """Return how many different people were texted."""
        return int(self._call("GET", "/distinct")["distinct"])

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS)
        try:
            connection.request(method, path, body)
            response: dict[str, Any] = json.load(connection.getresponse())
        finally:
            connection.close()
        return response


@contextmanager
def running_service(folder: Path) -> Iterator[Service]:
    """Run a stand-in on a free port.

    :param folder: folder for its output.
    """
    log = folder / "standin.log"
    with python(folder, "-m", "benchmarks.standin", log=log) as process:
        wait_for(lambda: log.read_text().strip().isdigit(), process, log, seconds=START_SECONDS)
        yield Service(int(log.read_text()))
