"""An attempt in a separate process, which can be killed; it receives its job as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sending import sender
from support.faults.sendings import POLL_SECONDS, Clock, Sending, open_by_url, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TESTS = Path(__file__).parents[2]
READY = "ready"
GO = "go"


@dataclass(frozen=True, slots=True)
class Order:
    """The job of a process.

    :param store: the ledger's URL.
    :param ahead: seconds by which the clock of the process is ahead.
    :param tick: seconds by which the clock advances each time that the process checks the claims of others.
    """

    base_url: str
    store: str
    campaign: str
    number: int
    rows: Sequence[str]
    chunk_size: int
    concurrency: int
    map_index: int = -1
    ahead: float = 0.0
    tick: float = 0.0


class Started:
    """A process that has opened the ledger and waits for the signal to begin."""

    def __init__(self, order: Order) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=TESTS,
            # The process imports the package under test, wherever that is installed.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(asdict(order)))

    def _say(self, line: str) -> None:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the process ended with {self._process.wait()} and said nothing")
        return line

    def wait_until_ready(self) -> None:
        """Return once the process is ready to begin."""
        if (line := self._hear()) != READY:
            raise RuntimeError(f"the process said {line!r}")

    def go(self) -> None:
        """Let the process begin."""
        self._say(GO)

    def result(self) -> dict[str, Any]:
        """Wait for the end of the process, and return its report."""
        result: dict[str, Any] = json.loads(self._hear())
        self._process.wait()
        return result

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@contextmanager
def started(orders: Sequence[Order]) -> Iterator[list[Started]]:
    """Start processes that begin at a signal. Leaving the context ends all of them."""
    processes: list[Started] = []
    try:
        for order in orders:
            processes.append(Started(order))  # noqa: PERF401  # a process that cannot be started must not leave the earlier ones running
        for process in processes:
            process.wait_until_ready()
        yield processes
    finally:
        for process in processes:
            process.kill()


def main() -> None:
    """Read a job from the first line of the input, and send it at the second line."""
    order = Order(**json.loads(sys.stdin.readline()))
    sender.POLL_SECONDS = POLL_SECONDS
    with quiet(), closing(open_by_url(order.store)) as store:
        sending = Sending(
            order.base_url,
            store,
            order.campaign,
            order.number,
            map_index=order.map_index,
            clock=Clock(order.ahead),
            tick=order.tick,
            chunk_size=order.chunk_size,
            concurrency=order.concurrency,
        )
        print(READY, flush=True)  # noqa: T201  # the parent reads this
        if sys.stdin.readline().strip() == GO:
            sending.run(order.rows)
            print(json.dumps(sending.ended), flush=True)  # noqa: T201  # the parent reads this


if __name__ == "__main__":
    main()
