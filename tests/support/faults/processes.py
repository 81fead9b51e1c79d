"""A try in a process of its own, which can be killed; it is told what to send by JSON."""

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
    """What a process is to send.

    :param store: the ledger's URL.
    :param ahead: seconds that its clock is ahead.
    :param tick: seconds by which the clock moves on each time that it looks what others hold.
    """

    base_url: str
    store: str
    campaign: str
    number: int
    rows: Sequence[str]
    block: int
    chunk_size: int
    concurrency: int
    map_index: int = -1
    ahead: float = 0.0
    tick: float = 0.0


class Started:
    """A process that has opened the ledger and waits for the word to begin."""

    def __init__(self, order: Order) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=TESTS,
            # What is tested here is what is to be tested there, wherever it is installed.
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
        """Return when it could begin."""
        if (line := self._hear()) != READY:
            raise RuntimeError(f"the process said {line!r}")

    def go(self) -> None:
        """Let it begin."""
        self._say(GO)

    def result(self) -> dict[str, Any]:
        """Wait for its end, and return what it says of it."""
        result: dict[str, Any] = json.loads(self._hear())
        self._process.wait()
        return result

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it by SIGKILL, wherever it is; no-op where it has ended."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@contextmanager
def started(orders: Sequence[Order]) -> Iterator[list[Started]]:
    """Start processes that begin at a word, and leave none of them."""
    processes: list[Started] = []
    try:
        for order in orders:
            processes.append(Started(order))  # noqa: PERF401  # one that cannot be started must not hide those before it
        for process in processes:
            process.wait_until_ready()
        yield processes
    finally:
        for process in processes:
            process.kill()


def main() -> None:
    """Send what the first line of the input says, at the second one."""
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
        print(READY, flush=True)  # noqa: T201  # the parent hears it
        if sys.stdin.readline().strip() == GO:
            sending.run(order.rows, order.block)
            print(json.dumps(sending.ended), flush=True)  # noqa: T201  # the parent hears it


if __name__ == "__main__":
    main()
