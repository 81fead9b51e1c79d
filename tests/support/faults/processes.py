"""An attempt in a process of its own, which can be killed."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sending import sender
from support.faults.arena import POLL_SECONDS
from support.faults.tries import attempt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

    from support.faults.tries import Campaign

SPAWN = get_context("spawn")


class Started:
    """A process that has loaded everything, and waits for the signal to begin.

    :param options: of :func:`attempt`; ``ahead`` is a number of seconds.
    """

    def __init__(self, campaign: Campaign, options: Mapping[str, Any]) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_send, args=(theirs, campaign, options), daemon=True)
        self._process.start()
        theirs.close()

    def await_ready(self) -> None:
        """Return once the process is ready to begin."""
        self._pipe.recv()

    def go(self) -> None:
        """Let the process begin."""
        self._pipe.send("go")

    def result(self) -> tuple[dict[str, int], str | None]:
        """Wait for the end of the attempt, and return its summary and the name of its error."""
        summary, error = self._pipe.recv()
        self._process.join()
        return summary, error

    @property
    def ended(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


@contextmanager
def started(orders: Sequence[tuple[Campaign, Mapping[str, Any]]]) -> Iterator[list[Started]]:
    """Start processes that begin at a signal. Leaving the context ends all of them."""
    processes: list[Started] = []
    try:
        for campaign, options in orders:
            processes.append(Started(campaign, options))  # where one cannot start, the others must end
        for process in processes:
            process.await_ready()
        yield processes
    finally:
        for process in processes:
            process.kill()


def _send(pipe: Connection, campaign: Campaign, options: Mapping[str, Any]) -> None:
    logging.disable(logging.CRITICAL)
    sender.POLL_SECONDS = POLL_SECONDS
    ahead = options.get("ahead", 0.0)
    pipe.send("ready")
    pipe.recv()
    ended = attempt(campaign, **{**options, "ahead": lambda: ahead})
    pipe.send((ended.summary, None if ended.error is None else type(ended.error).__name__))
