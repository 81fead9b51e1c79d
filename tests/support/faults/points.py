"""The points of a send at which a process can die, by name."""

from __future__ import annotations

import functools
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import urllib3.util.connection

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution import progress as attempt_progress
from airflow_provider_sms.ledger import attempts, decisions
from airflow_provider_sms.ledger import claims as ledger_module
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import PostgresBackend
from airflow_provider_sms.ledger.sqlite import SQLiteBackend
from airflow_provider_sms.sending import outcomes, settle
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.service import connections
from airflow_provider_sms.service.client import SmsClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Install: TypeAlias = Callable[[ExitStack, "_Turn"], None]


def _before(owner: Any, name: str, when: Callable[[dict[str, Any]], Any] = lambda _: True) -> Install:
    return _around(owner, name, before=when)


def _after(owner: Any, name: str, when: Callable[[dict[str, Any]], Any] = lambda _: True) -> Install:
    return _around(owner, name, after=when)


def _around(
    owner: Any,
    name: str,
    *,
    before: Callable[[dict[str, Any]], Any] = lambda _: False,
    after: Callable[[dict[str, Any]], Any] = lambda _: False,
) -> Install:
    """Insert a point before or after each call whose keyword arguments meet a condition."""

    def install(stack: ExitStack, passed: _Turn) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before(kwargs):
                passed()
            result = original(*args, **kwargs)
            if after(kwargs):
                passed()
            return result

        stack.enter_context(patch.object(owner, name, wrapped))

    return install


def _insert(stack: ExitStack, passed: _Turn) -> None:
    for store in (SQLiteBackend, PostgresBackend):
        _before(store, "insert_messages")(stack, passed)


def _sending(part: str) -> Install:
    """Insert a point into the writing of a request: after its headers, in its body, or after its body."""

    def install(stack: ExitStack, passed: _Turn) -> None:
        original = connections.write

        def write(sock: Any, request: bytes, *args: Any) -> None:
            body = request.find(b"\r\n\r\n") + 4
            cut = {"headers": body, "half": (body + len(request)) // 2, "body": len(request)}[part]
            original(sock, request[:cut], *args)
            passed()
            if cut < len(request):
                original(sock, request[cut:], *args)

        stack.enter_context(patch.object(connections, "write", write))

    return install


def _finishing(where: str) -> Install:
    """Insert a point into the ledger's finish, which follows a commit that took effect and raised.

    Only a commit whose turn it is passes the point, so that the n-th finish is that of the n-th commit.
    """

    def install(stack: ExitStack, passed: _Turn) -> None:
        commit, record, finish = CampaignLedger.commit, ledger_module.record, CampaignLedger.finish
        write = CampaignLedger._write
        finishing, claiming = threading.Event(), threading.local()

        def noted_commit(ledger: CampaignLedger, **kwargs: Any) -> Any:
            claiming.now = bool(kwargs["chunks"])
            try:
                return commit(ledger, **kwargs)
            finally:
                claiming.now = False

        @contextmanager
        def failing_write(ledger: CampaignLedger, **how: Any) -> Iterator[Any]:
            with write(ledger, **how) as connection:
                yield connection
            if getattr(claiming, "now", False) and passed(peek=True):
                raise LedgerError("broken on purpose")

        def noted_record(*args: Any) -> None:
            record(*args)
            if finishing.is_set() and where == "in":
                passed()

        def noted_finish(*args: Any) -> None:
            if where == "before":
                passed()
            finishing.set()
            finish(*args)
            if where == "after":
                passed()

        stack.enter_context(patch.object(CampaignLedger, "commit", noted_commit))
        stack.enter_context(patch.object(CampaignLedger, "_write", failing_write))
        stack.enter_context(patch.object(CampaignLedger, "finish", noted_finish))
        stack.enter_context(patch.object(ledger_module, "record", noted_record))

    return install


POINTS: dict[str, Install] = {
    "before the claim": _before(CampaignLedger, "commit", lambda kwargs: kwargs["chunks"]),
    "claim begun": _before(CampaignLedger, "_claim"),
    "request inserted": _insert,
    "claim inserted": _after(CampaignLedger, "_claim"),
    "claim committed": _after(CampaignLedger, "commit", lambda kwargs: kwargs["chunks"]),
    "handed over": _before(Sender, "_post_one"),
    "before the post": _before(SmsClient, "send_bulk"),
    "before connecting": _before(urllib3.util.connection, "create_connection"),
    "connected": _after(connections.Connections, "_connect"),
    "headers sent": _sending("headers"),
    "half sent": _sending("half"),
    "sent": _sending("body"),
    "answer begun": _after(connections._Response, "begin"),
    "answered": _after(SmsClient, "send_bulk"),
    "landed": _before(outcomes, "answered"),
    "before the record": _before(CampaignLedger, "commit", lambda kwargs: kwargs["outcomes"]),
    "recorded": _after(ledger_module.RECORD_RESPONSE, "run"),
    "record committed": _after(CampaignLedger, "commit", lambda kwargs: kwargs["outcomes"]),
    "before finish": _finishing("before"),
    "in finish": _finishing("in"),
    "finished": _finishing("after"),
}
"""From a campaign's claim to its end, in order."""

WAIT_POINTS: dict[str, Install] = {
    "gone on": _before(Sender, "run"),
    "halted": _before(Sender, "_flush"),
    "deferred": _after(Sender, "run"),
}
"""Points of a leg that resumes after a wait, or ends with one."""

NOTE_POINTS: dict[str, Install] = {
    "before a note": _before(attempt_progress, "note_progress"),
    "in a note": _before(attempts, "_put"),
    "noted": _after(attempt_progress, "note_progress"),
}
"""Points of a progress note: an attempt writes one when it enters, one before it claims, and one at the end."""

SETTLE_POINTS: dict[str, Install] = {
    "before the reading": _before(settle, "record_reading"),
    "read": _after(settle, "record_reading"),
    "judged": _after(settle, "judge"),
    "before it is closed": _before(settle, "close_by_balance"),
    "in the closing": _after(decisions, "_close"),
    "closed": _after(settle, "close_by_balance"),
    "settled": _after(settle.Settle, "run"),
}
"""From the reading of the balance that tells of a lost request to what the sender does about it."""

IN_TRANSACTION = frozenset({"claim begun", "request inserted", "claim inserted", "recorded", "in finish", "in a note"})
"""Points at which a process holds the ledger's lock."""

RAISING = tuple(point for point in POINTS if point != "handed over")
"""Points at which code can raise; the other one contains no code that could."""


class _Turn:
    """Counts how often a point is passed, and strikes once."""

    def __init__(self, nth: int, strike: Callable[[], None]) -> None:
        self.struck = False
        self._left = nth
        self._strike = strike
        self._lock = threading.Lock()

    def __call__(self, *, peek: bool = False) -> bool:
        """Pass the point.

        :param peek: True counts, and returns whether it is the turn; the strike follows with the next call.
        """
        with self._lock:
            if self.struck:
                return False
            self._left -= self._left > 0 if peek else 1
            if self._left > 0 or peek:
                return self._left <= 0
            self.struck = True
        self._strike()
        return True


@contextmanager
def struck(point: str, nth: int, strike: Callable[[], None]) -> Iterator[_Turn]:
    """Call a function when a point is passed for the n-th time; every request opens its own connection."""
    turn = _Turn(nth, strike)
    with ExitStack() as stack:
        stack.enter_context(patch.object(connections, "MAX_IDLE", -1.0))
        (POINTS | WAIT_POINTS | NOTE_POINTS | SETTLE_POINTS)[point](stack, turn)
        yield turn
