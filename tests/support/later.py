"""Events during the run of a task."""

from __future__ import annotations

import threading
from contextlib import contextmanager


@contextmanager
def later(happens, when):
    """Call a function in another thread once a condition holds."""
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
