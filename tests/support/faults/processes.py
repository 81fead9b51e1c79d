"""Work in processes of their own, which begin together and can be killed."""

from __future__ import annotations

from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from multiprocessing.synchronize import Barrier

SPAWN = get_context("spawn")
PATIENCE = 180.0
"""Seconds in which processes load what they need, or the first of them ends."""


class Started:
    """A process that works.

    :param pipe: gives what the work returns.
    """

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self._process = process
        self._pipe = pipe

    def result(self) -> Any:
        """Wait for the end of the work, and return its result.

        :raises EOFError: it has none.
        """
        return self._pipe.recv()

    @property
    def ended(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        self._process.kill()
        self._process.join()


@contextmanager
def started(
    work: Callable[..., Any], orders: Sequence[Sequence[Any]], prepare: Callable[[], object] | None = None
) -> Iterator[list[Started]]:
    """Yield processes that have just begun to work, all at once. Leaving the context ends them.

    :param orders: arguments of the work of each process.
    :param prepare: what each does before they begin.
    """
    together = SPAWN.Barrier(len(orders) + 1)
    processes: list[Started] = []
    try:
        for arguments in orders:
            mine, theirs = SPAWN.Pipe(duplex=False)
            process = SPAWN.Process(target=_run, args=(together, theirs, prepare, work, arguments), daemon=True)
            process.start()
            theirs.close()
            processes.append(Started(process, mine))
        together.wait(PATIENCE)
        yield processes
    finally:
        for each in processes:
            each.kill()


def _run(
    together: Barrier, pipe: Connection, prepare: Callable[[], object] | None, work: Callable[..., Any], arguments: Any
) -> None:
    if prepare is not None:
        prepare()
    together.wait(PATIENCE)
    pipe.send(work(*arguments))
