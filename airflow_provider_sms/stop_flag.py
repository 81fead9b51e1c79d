"""The wish that a task should end."""

from __future__ import annotations


class StopFlag:
    """Set once, seen by every thread.

    A plain flag: it is set in signal handlers, where a lock that the interrupted code holds would never be free, and it
    is part of an operator, which Airflow copies.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Ask for the end."""
        self._set = True

    def is_set(self) -> bool:
        """Say whether the end was asked for."""
        return self._set
