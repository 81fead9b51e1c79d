"""A bound on waits inside a C library: a socket that is silent for too long is shut down, which wakes whoever reads it.

Keepalives find a machine that is gone. They do not find a process that hangs on a machine that lives: its kernel goes
on to acknowledge every packet. And no signal of Python's interrupts a library that waits in C.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_SECONDS = 0.25
"""How often the waits are looked at: a bound is exceeded by this much at most."""
IDLE_SECONDS = 10.0
"""How long the thread outlives the last wait; the next one starts it anew."""


class Wait:
    """One wait that is watched.

    :param expired: whether the socket was shut down.
    """

    __slots__ = ("deadline", "descriptor", "expired")

    def __init__(self, deadline: float, descriptor: int) -> None:
        self.deadline = deadline
        self.descriptor = descriptor
        self.expired = False

    def expire(self) -> None:
        """Shut the connection down, for every descriptor of it."""
        self.expired = True
        with suppress(OSError), socket.socket(fileno=os.dup(self.descriptor)) as its:
            its.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """Watches any number of waits, of any threads, in one thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[int, Wait] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    @contextmanager
    def bound(self, descriptor: int, seconds: float) -> Iterator[Wait]:
        """Shut a socket down when the block lasts longer than a time.

        :param descriptor: of the socket.
        """
        # A duplicate: the library may close its own when it wakes, and another thread's socket may then get the number.
        wait = Wait(time.monotonic() + seconds, os.dup(descriptor))
        number = next(self._numbers)
        with self._lock:
            self._waits[number] = wait
            # A process that was forked has no thread but the one that forked it.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="sms-ledger-watchdog", daemon=True)
                self._thread.start()
        try:
            yield wait
        finally:
            with self._lock:
                del self._waits[number]
            os.close(wait.descriptor)

    def _watch(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            with self._lock:
                for wait in self._waits.values():
                    if now > wait.deadline and not wait.expired:
                        wait.expire()
                if self._waits:
                    idle_since = now
                elif now - idle_since > IDLE_SECONDS:
                    self._thread = None
                    return


WATCHDOG = Watchdog()
"""The one of this process."""
