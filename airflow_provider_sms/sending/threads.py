"""The threads of a send: some post, one reads ahead, one works uninterrupted by signals, and one waits in C."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self


T = TypeVar("T")


class WorkerPool(Generic[T]):
    """A fixed number of threads that do the same work on the items submitted.

    All of them run before anything is claimed. A pool that starts threads as they are needed may fail to start one, and
    would then post a request late, after its claim was given back.

    :param count: how many threads.
    :param work: called in one of the threads for each item; does not raise.
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

    def submit(self, item: T) -> None:
        """Submit an item to a thread."""
        self._given.put((item,))

    def _end(self) -> None:
        started = [thread for thread in self._threads if thread.ident is not None]
        for _ in started:
            self._given.put(None)
        for thread in started:
            thread.join()

    def _run(self) -> None:
        while (given := self._given.get()) is not None:
            self._work(*given)


_POLL_SECONDS = 0.1
"""Seconds between two looks at whether the consumer has left."""
LEAVE_SECONDS = 5.0
"""Seconds that the consumer waits for the item in the making when it leaves: storage can hang."""


class Prefetcher(Generic[T]):
    """An iterator whose next items are made while the last one is in use; for one consumer.

    Nothing is read before it is entered. An error in reading is raised where the item would have come, and ends the
    iteration. Where the system has no more threads, each item is made when it is asked for.

    :param items: iterated, and closed where possible, in the other thread.
    :param depth: the most items that wait; one more is in the making.
    :param leave_seconds: called when the consumer leaves, for the seconds that it waits for the item in the making.
    """

    def __init__(
        self, items: Iterable[T], depth: int = 1, leave_seconds: Callable[[], float] = lambda: LEAVE_SECONDS
    ) -> None:
        self._items = iter(items)
        self._leave_seconds = leave_seconds
        self._ready: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(depth)
        self._taken: list[tuple[T] | BaseException | None] = []
        """What :meth:`wait` has found, until it is asked for."""
        self._closed = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._read, name="sms-read", daemon=True)
        self.hangs = False
        """Whether the item in the making was not there soon after the consumer left."""

    def __enter__(self) -> Self:
        try:
            if self._thread is not None:
                self._thread.start()
        except RuntimeError:
            self._thread = None
        return self

    def __exit__(self, *_: object) -> None:
        """Read nothing more; the thread ends with the item in the making."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(self._leave_seconds())
            self.hangs = self._thread.is_alive()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._thread is None:
            return next(self._items)
        item = self._taken.pop() if self._taken else self._ready.get()
        if isinstance(item, tuple):
            return item[0]
        # The next call finds the same end.
        self._ready.put(None)
        if item is None:
            raise StopIteration
        raise item

    def wait(self, seconds: float) -> bool:
        """Wait for the next item, and return whether it, or the end, is there; always True where no thread reads ahead.

        :param seconds: the longest wait.
        """
        if self._thread is not None and not self._taken:
            with suppress(queue.Empty):
                self._taken.append(self._ready.get(timeout=seconds))
        return self._thread is None or bool(self._taken)

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._items:
                self._offer((item,))
                if self._closed.is_set():
                    break
        except BaseException as error:  # noqa: BLE001  # it is raised where the item would have come
            end = error
        finally:
            if close := getattr(self._items, "close", None):
                close()
        self._offer(end)

    def _offer(self, item: tuple[T] | BaseException | None) -> None:
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return


def run_uninterrupted(
    work: Callable[[], None],
    *,
    on_interrupt: Callable[[], None],
    heartbeat: Callable[[], None],
    every: float = 0.5,
) -> BaseException | None:
    """Run work in a thread of its own while this one waits, and return what interrupted this one; None means nothing.

    Python raises the exceptions of signal handlers (a timeout, a termination) in the main thread, between any two
    instructions. Work that records what it did cannot live there. An interruption asks the work to stop and is returned
    once it has; a second one gives up waiting and is raised.

    :param work: runs once; its exception is raised here.
    :param on_interrupt: asks the work to stop soon.
    :param heartbeat: called in this thread while the work runs.
    :param every: seconds between heartbeats.
    """
    errors: list[BaseException] = []

    def target() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            errors.append(error)
        finally:
            ended.set()

    # Not Thread.join: an exception within it makes Python 3.11 believe that the thread has ended.
    ended = threading.Event()
    thread = threading.Thread(target=target, name="sms-sender", daemon=True)
    interruption: BaseException | None = None
    try:
        thread.start()
        while not ended.wait(every):
            heartbeat()
    except BaseException as error:  # returned below
        if thread.ident is None:
            raise
        interruption = error
        on_interrupt()
        ended.wait()
    if errors:
        raise errors[0] from interruption
    return interruption


def run_beside(work: Callable[[], T]) -> T:
    """Run work in a thread of its own, and return what it returns; meanwhile this thread handles signals.

    Python handles a signal in the main thread, between two instructions. A library that waits in C, as SQLite does
    for its lock, keeps the signal waiting until it returns, and Airflow kills a task five seconds after telling it to
    stop. An exception of a signal handler is raised here; the work then ends in its thread, and its result is lost.
    Where the system has no more threads, the work is done in this one.

    :param work: its exception is raised here.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            errors.append(error)
        finally:
            ended.set()

    # Not Thread.join: see above.
    ended = threading.Event()
    try:
        threading.Thread(target=target, name="sms-beside", daemon=True).start()
    except RuntimeError:
        return work()
    ended.wait()
    if errors:
        raise errors[0]
    return results[0]
