"""The sandbox as a separate process, read and topped up through its control paths."""

from __future__ import annotations

import http.client
import json
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from demo.processes import environment, running, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 30.0
CALL_SECONDS = 10.0

_READY = re.compile(r"^sandbox ready at (http://127\.0\.0\.1:(\d+))/v1$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The sandbox's state at one moment.

    :param requests: requests to the service, of all operations.
    :param balance: credits.
    :param witness: content of the witness file.
    """

    requests: int
    balance: Decimal
    witness: bytes


class Service:
    """A running sandbox.

    :param address: the root URL.
    :param port: port that it listens on.
    :param witness: the file of accepted messages.
    """

    def __init__(self, address: str, port: int, witness: Path) -> None:
        self.address = address
        self._port = port
        self._witness = witness

    def read(self) -> Seen:
        """Return the current state."""
        state = self._call("GET", "state")
        return Seen(state["requests"], Decimal(str(state["balance"])), self._witness.read_bytes())

    def top_up(self, balance: int) -> None:
        """Set the balance."""
        self._call("PUT", "balance", json.dumps({"balance": balance}))

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        # http.client ignores proxies: the user's proxy could not reach this machine's loopback address.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_SECONDS)
        try:
            connection.request(method, f"/_sandbox/{path}", body)
            state: dict[str, Any] = json.load(connection.getresponse())
        finally:
            connection.close()
        return state


@contextmanager
def running_service(folder: Path, token: str, balance: int) -> Iterator[Service]:
    """Run a sandbox on a free port.

    :param folder: folder for ``sandbox.log`` and ``witness.jsonl``.
    :param token: bearer token to accept.
    :param balance: initial balance.
    :raises DemoError: when the sandbox does not start.
    """
    log, witness = folder / "sandbox.log", folder / "witness.jsonl"
    command = [sys.executable, "-m", "airflow_provider_sms.sandbox", "--port=0", f"--token={token}"]
    command += [f"--balance={balance}", f"--log={witness}"]
    with running(command, env=environment(folder / "home", {}), cwd=folder, log=log) as process:
        wait_until(
            lambda: _READY.search(log.read_text()) is not None,
            process,
            seconds=START_SECONDS,
            what="the sandbox accepts connections",
            log=log,
        )
        ready = _READY.search(log.read_text())
        assert ready is not None  # noqa: S101 - it was there a moment ago
        yield Service(ready[1], int(ready[2]), witness)
