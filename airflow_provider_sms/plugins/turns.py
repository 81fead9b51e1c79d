"""Turns: only one response that reads the ledger is made at a time.

The pages are made in Airflow's own web server, by the same threads and under the same lock of Python as Airflow's API.
A user who opens a page forty times must not keep all other users of Airflow waiting: the waiting users take turns.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, status
from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

WAITING = 3
"""Requests of a user that may wait for a turn: as many as the open pages of one person make at the same time."""
PATIENCE_SECONDS = 5.0
"""Seconds that a request waits for its turn."""
RETRY_SECONDS = 5
"""Seconds after which a refused request may be tried again."""
_LOOK_SECONDS = 0.02
"""Seconds between two checks whether it is a request's turn. Nothing is made in between, so it is short."""


@dataclass(eq=False)
class _Waiting:
    """A request that waits for its turn."""

    user_id: str


class Turns:
    """The turns of a process, with any number of event loops.

    The next turn goes to the waiting user whose last turn began longest ago, and among that user's requests to the one
    that came first. So a user with several requests delays each request of another user by one response, not by all of
    them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._present: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []
        self._last_turn: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a user's turn; it lasts as long as the block.

        Waits without a thread: Airflow's web server has a limited number of them.

        :raises HTTPException: 429: too many requests of this user wait already, or it waited too long.
        """
        give_up = time.monotonic() + PATIENCE_SECONDS
        with self._lock:
            if self._present[user_id] > WAITING:
                raise _too_many()
            self._present[user_id] += 1
            request = _Waiting(user_id)
            self._waiting.append(request)
        try:
            while not self._begin(request):
                if time.monotonic() > give_up:
                    raise _too_many()
                await asyncio.sleep(_LOOK_SECONDS)
            try:
                yield
            finally:
                with self._lock:
                    self._busy = False
        finally:
            with self._lock:
                if request in self._waiting:  # it waited too long, or the server is shutting down
                    self._waiting.remove(request)
                self._present[user_id] -= 1
                self._present += Counter()  # drops the users who have none

    def _begin(self, request: _Waiting) -> bool:
        """Begin a request's turn if it is the next one, and return whether it is."""
        with self._lock:
            # The list is in the order of arrival, and the first of several with the same time is the minimum.
            if self._busy or request is not min(self._waiting, key=lambda each: self._last_turn.get(each.user_id, 0.0)):
                return False
            self._busy = True
            self._waiting.remove(request)
            self._last_turn[request.user_id] = time.monotonic()
        return True


TURNS = Turns()
"""The turns of this process."""


def in_turn(route: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a route that reads the ledger: it runs in a thread when it is the user's turn.

    :param route: a function with an argument ``access``, the user.
    """

    @wraps(route)
    async def waiting(**arguments: Any) -> Any:
        async with TURNS.turn(arguments["access"].user_id):
            return await run_in_threadpool(route, **arguments)

    # FastAPI evaluates annotations in the module of the decorated function.
    waiting.__signature__ = inspect.signature(route, eval_str=True)  # type: ignore[attr-defined]
    return waiting


def _too_many() -> HTTPException:
    return HTTPException(
        status.HTTP_429_TOO_MANY_REQUESTS,
        "Too many pages are being made at the moment, for you or for others. Nothing was done. Try again in "
        f"{RETRY_SECONDS} seconds",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
