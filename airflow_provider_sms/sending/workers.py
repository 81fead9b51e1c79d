"""The threads of a send: those that post, and one that works uninterrupted by signals."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from airflow_provider_sms.sending.request_batch import InFlightRequest


class WorkerPool:
    """A fixed number of threads that post the requests submitted.

    All of them run before anything is claimed. A pool that starts threads as they are needed may fail to start one, and
    would then post a request late, after its claim was given back.

    :param work: called in one of the threads for each request; does not raise.
    :raises RuntimeError: the system has no more threads; those that were started have ended.
    """

    def __init__(self, count: int, work: Callable[[InFlightRequest], None]) -> None:
        self._work = work
        self._given: queue.SimpleQueue[InFlightRequest | None] = queue.SimpleQueue()
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

    def submit(self, request: InFlightRequest) -> None:
        """Queue a request for the next free thread."""
        self._given.put(request)

    def _end(self) -> None:
        started = [thread for thread in self._threads if thread.ident is not None]
        for _ in started:
            self._given.put(None)
        for thread in started:
            thread.join()

    def _run(self) -> None:
        while (given := self._given.get()) is not None:
            self._work(given)


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
    :param heartbeat: called in this thread every so many seconds while the work runs.
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
