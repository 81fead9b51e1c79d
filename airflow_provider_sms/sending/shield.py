"""Work that no signal can interrupt in the middle of a commit."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass(frozen=True)
class Shielded(Generic[T]):
    """How shielded work ended.

    :param result: what it returned.
    :param interruption: what was raised in the main thread meanwhile; None where nothing was.
    """

    result: T
    interruption: BaseException | None


def run_shielded(
    work: Callable[[], T],
    *,
    on_interrupt: Callable[[], None],
    heartbeat: Callable[[], None],
    every: float = 0.5,
) -> Shielded[T]:
    """Run work in a thread of its own while this one waits.

    Python raises what signal handlers raise (a timeout, a termination) in the main thread, between any two
    instructions. Work that records what it did cannot live there. An interruption asks the work to stop and is handed
    back once it has; a second one gives up waiting and is raised.

    :param work: runs once; what it raises is raised here.
    :param on_interrupt: asks the work to stop soon.
    :param heartbeat: called in this thread while the work runs.
    :param every: seconds between heartbeats.
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

    # Not Thread.join: an exception within it makes Python 3.11 believe that the thread has ended.
    ended = threading.Event()
    thread = threading.Thread(target=target, name="sms-sender", daemon=True)
    interruption: BaseException | None = None
    try:
        thread.start()
        while not ended.wait(every):
            heartbeat()
    except BaseException as error:  # handed back below
        if thread.ident is None:
            raise
        interruption = error
        on_interrupt()
        ended.wait()
    if errors:
        raise errors[0] from interruption
    if not results:
        raise interruption or RuntimeError("the work ended without a result")
    return Shielded(results[0], interruption)
