"""Things that happen while a task runs."""

from __future__ import annotations

import threading
from contextlib import contextmanager


@contextmanager
def later(happens, when):
    """Let something happen, in another thread, once a condition holds."""
    ended = threading.Event()

    def watch():
        while not ended.wait(0.05):
            if when():
                happens()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
