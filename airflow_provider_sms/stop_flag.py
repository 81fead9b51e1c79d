"""A flag that asks a task to end.

It is a module of its own, though a short one, because the operator owns the flag, and planning and sending, which know
nothing of operators or of each other's threads, read it.
"""

from __future__ import annotations

from airflow_provider_sms.exceptions import StoppedError


class StopFlag:
    """Set once, seen by every thread.

    A plain flag, not a ``threading.Event``: it is set in signal handlers, where a lock that the interrupted code holds
    would never be released, and it is part of an operator, which Airflow copies.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Ask the task to end."""
        self._set = True

    def is_set(self) -> bool:
        """Return whether the task was asked to end."""
        return self._set

    def require_running(self) -> None:
        """Raise where the task was asked to end before it sent anything."""
        if self._set:
            raise StoppedError("Told to stop, so nothing was sent")
