"""Reading ahead of what is sent, in a thread of its own and within a bound."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

T = TypeVar("T")

_POLL_SECONDS = 0.1
_LEAVE_SECONDS = 5.0
"""How long the item in the making is waited for at the end: storage can hang."""


class ReadAhead(Generic[T]):
    """An iterator whose next items are made while the last one is in use; for one consumer.

    Nothing is read before it is entered. What reading raises is raised where the item would have come, and ends it.
    Where the system has no more threads, each item is made when it is asked for.

    :param items: iterated, and closed where it can be, in the other thread.
    :param depth: items that wait at most; one more is in the making.
    """

    def __init__(self, items: Iterable[T], depth: int = 1) -> None:
        self._items = iter(items)
        self._ready: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(depth)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._read, name="sms-read", daemon=True)

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
            self._thread.join(_LEAVE_SECONDS)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._thread is None:
            return next(self._items)
        item = self._ready.get()
        if isinstance(item, tuple):
            return item[0]
        # The next call finds the same end.
        self._ready.put(None)
        if item is None:
            raise StopIteration
        raise item

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._items:
                self._give((item,))
                if self._closed.is_set():
                    break
        except BaseException as error:  # noqa: BLE001  # it is raised where the item would have come
            end = error
        finally:
            if close := getattr(self._items, "close", None):
                close()
        self._give(end)

    def _give(self, item: tuple[T] | BaseException | None) -> None:
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return
