"""Threads that post."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

T = TypeVar("T")


class Posters(Generic[T]):
    """A fixed number of threads that do the same work on whatever they are given.

    All of them run before anything is claimed. A pool that starts threads as they are needed may fail to, and keep what
    it could not start for later, when its claim was given back.

    :param count: threads.
    :param work: called in one of them for each thing given; does not raise.
    :raises RuntimeError: the system has no more threads; those that were started have ended.
    """

    def __init__(self, count: int, work: Callable[[T], None]) -> None:
        self._work = work
        self._given: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"sms-post-{n}", daemon=True) for n in range(count)]

        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def give(self, thing: T) -> None:
        """Have a thread work on it."""
        self._given.put((thing,))

    def _end(self) -> None:
        started = [thread for thread in self._threads if thread.ident is not None]
        for _ in started:
            self._given.put(None)
        for thread in started:
            thread.join()

    def _run(self) -> None:
        while (given := self._given.get()) is not None:
            self._work(*given)
