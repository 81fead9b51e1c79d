"""Elapsed time by a clock that nobody can set, and the moment by which a thread's requests must have ended.

A claim in the ledger holds for a number of seconds, and the messages of a request that outlasts it may be sent again by
others. A machine may sleep, or a token may be slow to come, between the claim and the request's first byte. So the
limit is checked where a request begins, by a clock that goes on counting while the machine sleeps.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TIMEOUT = 180
"""Seconds of the longest timeout: no request, with a balance before it and new tokens for both, is open for an hour,
beyond which nothing casts doubt on it (:data:`airflow_provider_sms.ledger.balances.AN_HOUR`)."""

# Linux's CLOCK_MONOTONIC stands still while the machine sleeps; that of macOS, which has no other one, does not.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_thread = threading.local()


def elapsed() -> float:
    """Return seconds from any start, by a clock that nobody can set and that counts while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


@contextmanager
def ending_by(moment: float) -> Iterator[None]:
    """Let this thread begin no request that might end after a moment.

    :param moment: in seconds of the client's clock, which is :func:`elapsed` unless another one was passed.
    """
    _thread.moment = moment
    try:
        yield
    finally:
        del _thread.moment


def latest_end() -> float:
    """Return the moment by which a request of this thread must have ended; infinity where there is no limit."""
    moment: float = getattr(_thread, "moment", float("inf"))
    return moment
