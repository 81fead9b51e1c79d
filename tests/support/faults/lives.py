"""The life of an attempt: the points that it passes, and the failures at them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.plans import Mishap

LEDGER_POINTS = ("statement", "commit", "committed")
FREE_POINTS = ("committed", "post", "posted")
"""Points without an open transaction: an attempt that hangs in a transaction only makes all others wait."""

PATIENCE = 60.0
"""Seconds after which a thread counts as stuck."""


class DiedError(BaseException):
    """The death of an attempt's process, which no error handler of the attempt may catch."""


class Life:
    """The points that an attempt has passed, and whether it still lives.

    :param mishaps: the failures to cause.
    :param acts: functions for the kinds of failure outside the attempt: ``jump``, ``back``, ``stop``,
        ``wake``.
    """

    def __init__(self, mishaps: Iterable[Mishap], acts: dict[str, Callable[[], None]]) -> None:
        self._waiting = list(mishaps)
        self._acts = acts
        self._lock = threading.Lock()
        self._steps = 0
        self._failures = 0
        self._awake = threading.Event()
        self._awake.set()
        self._over = False
        self.dead = False
        self.left = threading.Event()
        """Set once the attempt has ended, died or hung, so that nobody waits for it."""

    def pass_by(self, point: str, error: type[Exception] | None = None) -> None:
        """Pass a point, and continue, hang or die there.

        :param error: error that the database raises there.
        :raises DiedError: when the attempt is dead.
        """
        self._check()
        due, fails = self._befalls(point)
        for mishap in due:
            if mishap.what == "die":
                self.dead = True
                self.left.set()
            elif mishap.what == "hang":
                self._hang()
            else:
                self._acts[mishap.what]()
        if point in FREE_POINTS and not self._awake.wait(PATIENCE):
            raise TimeoutError("a try that hangs was not woken")
        self._check()
        if fails and error is not None:
            raise error("the disk failed, as it was asked to")

    def _check(self) -> None:
        if self.dead:
            raise DiedError

    def _befalls(self, point: str) -> tuple[list[Mishap], bool]:
        with self._lock:
            self._steps += 1
            due = [m for m in self._waiting if m.step <= self._steps and _fits(m, point)]
            self._waiting = [m for m in self._waiting if m not in due]
            self._failures += sum(m.times for m in due if m.what == "fail")
            fails = point in LEDGER_POINTS and self._failures > 0
            self._failures -= fails
        return [m for m in due if m.what != "fail"], fails

    def _hang(self) -> None:
        with self._lock:
            if not self._over:
                self._awake.clear()
        self.left.set()

    def wake(self, *, for_good: bool = False) -> None:
        """Resume an attempt that hangs.

        :param for_good: whether it never hangs again.
        """
        with self._lock:
            self._over = self._over or for_good
            self._awake.set()


def _fits(mishap: Mishap, point: str) -> bool:
    if mishap.what == "fail" and point not in LEDGER_POINTS:
        return False
    return mishap.at in ("any", point)


class Wire:
    """A ledger backend whose database calls are points of an attempt's life."""

    def __init__(self, store: LedgerBackend) -> None:
        self.store = store
        self.engine = store._engine
        self.life: Life | None = None
        dialect: Any = self.engine.dialect
        self._error: type[Exception] = dialect.dbapi.OperationalError
        for name in ("do_execute", "do_executemany"):
            setattr(dialect, name, self._before("statement", getattr(dialect, name)))
        dialect.do_commit = self._before("commit", self._after("committed", dialect.do_commit))

    def _before(self, point: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def passing(*args: Any, **kwargs: Any) -> Any:
            self._pass_by(point)
            return call(*args, **kwargs)

        return passing

    def _after(self, point: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def passing(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._pass_by(point)
            return result

        return passing

    def _pass_by(self, point: str) -> None:
        if self.life is not None:
            self.life.pass_by(point, self._error)
