"""What the actors of a run share: a ledger in a file, a service in memory that witnesses, and a clock that is set."""

from __future__ import annotations

import queue
import sqlite3
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_sms.exceptions import LedgerError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import CLAIMED, UNKNOWN
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.sending import sender as sender_module
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.sending.stop_conditions import StopConditions
from airflow_provider_sms.service.responses import ErrorReport, SendResponse
from airflow_provider_sms.stop_flag import StopFlag
from support.engine import Table, Text
from support.orders.schedule import Schedule
from support.sending import claimant, people

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from airflow_provider_sms.messages.message import Outgoing
    from support.orders.schedule import Point

CAMPAIGN = "spring"
POST_SECONDS = 15.0
PATIENCE = 90.0
"""Seconds after its claim in which the outcome of a request is expected: more than one jump of the clock."""
LATER = 10_000.0
"""Seconds after which every claim has lapsed, and nobody may record its outcome any more."""
JUMP = 60.0
"""Seconds after which a claim has lapsed, while its process may still record its outcome."""

STATE = """
SELECT 'm', message_key, request_id, '' FROM sms_message UNION ALL
SELECT 's', message_key, request_id, '' FROM sms_superseded UNION ALL
SELECT 'r', id, coalesce(event_id, 0), state FROM sms_request ORDER BY 1, 2, 3
"""


@dataclass(frozen=True)
class Case:
    """What happens in every order.

    :param attempts: the try number and the task of each attempt.
    :param messages: people in the table of each attempt.
    :param lost: how many responses may be lost, before or after the service took the request.
    :param refused: how many requests the service may turn away, unprocessed.
    :param crashes: how many processes may die.
    :param commits: how many commits may fail, or be reported as failed.
    :param jumps: how often time may pass until every claim has lapsed.
    :param decisions: how many unknown requests a person decides, either way.
    """

    attempts: tuple[tuple[int, str], ...] = ((1, "a"), (1, "a"))
    messages: int = 1
    chunk_size: int = 1
    concurrency: int = 1
    on_unknown: str = "fail"
    lost: int = 0
    refused: int = 0
    crashes: int = 0
    commits: int = 0
    jumps: int = 0
    decisions: int = 0


@dataclass(frozen=True)
class Ended:
    """The end of an attempt: its summary, what had been taken by then, and its error."""

    summary: dict[str, Any]
    taken: int
    error: Exception | None


class Mail(list[Any]):
    """The queue between a process and its requests in flight, which one reads when it is its turn."""

    def __init__(self, world: World) -> None:
        self._world = world

    put = list.append

    def get(self, timeout: float) -> Any:
        """Wait for something; time passes only where nothing is in flight."""
        schedule = self._world.schedule
        if not (self._world.is_free or schedule.is_last()):
            schedule.step("collects", lambda: ("",) if self else ())
        if not self:
            self._world.now += timeout
            raise queue.Empty
        return self.pop(0)

    def get_nowait(self) -> Any:
        """Return what is there already."""
        if not self:
            raise queue.Empty
        return self.pop(0)


class Pool:
    """The threads of a process, as actors."""

    def __init__(self, world: World, work: Any) -> None:
        self._world = world
        self._work = work

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, request: Any) -> None:
        """Let a request be in flight."""
        if self._world.is_free:
            self._work(request)
            return
        process = self._world.schedule.process()
        self._world.schedule.start(f"{process} request {request.request_id}", process, lambda: self._work(request))


class Ledger:
    """A ledger in a file, opened once for each process of a run; the runs follow one another in it.

    :param folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.db"
        self._stores = [open_sqlite(self.path)]
        self._used = 0
        self.raw = sqlite3.connect(self.path, isolation_level=None)
        tables = self.raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'sms_%'")
        self._tables = [name for (name,) in tables if name != "sms_version"]

    def empty(self, world: World) -> None:
        """Forget everything, for a new run."""
        self.raw.execute("BEGIN IMMEDIATE")
        for name in self._tables:
            self.raw.execute(f"DELETE FROM {name}")  # our own tables
        self.raw.execute("COMMIT")
        self._world, self._used = world, 0

    def open(self) -> Any:
        """Return a store of its own for a process."""
        if self._used == len(self._stores):
            self._stores.append(open_sqlite(self.path))
        store = self._stores[self._used]
        self._used += 1
        store.clock = lambda: self._world.now
        store.patience = Patience(PATIENCE, sleep=self._world._sleep, monotonic=store.clock)
        store.write = partial(self._write, type(store).write, store)
        return store

    @contextmanager
    def _write(self, write: Any, store: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        outcome = self._world.step("writes", faults={"commits": ("fails", "is called failed")})
        if outcome == "fails":
            raise LedgerError("fails")
        with write(store, *args, **kwargs) as connection:
            yield connection
        if outcome:
            raise LedgerError("is called failed")

    def close(self) -> None:
        """Close the file."""
        for store in self._stores:
            store.close()
        self.raw.close()


@dataclass
class World:
    """One run of a case."""

    case: Case
    ledger: Ledger
    path: list[Point]
    seen: set[bytes]
    now: float = 1_000_000.0
    taken: list[tuple[bytes, int]] = field(default_factory=list)
    """The key and the event of each message that the service took."""
    ended: list[Ended] = field(default_factory=list)
    decided: list[tuple[int, str]] = field(default_factory=list)
    is_free: bool = False
    """Whether everything goes well at once, without a choice."""

    def __post_init__(self) -> None:
        self.left = {name: getattr(self.case, name) for name in ("lost", "refused", "crashes", "commits", "jumps")}
        self.left["decisions"] = self.case.decisions
        self.schedule = Schedule(self.path, self._shared, self._observed, self.seen, self._idle)
        self.ledger.empty(self)
        self._waiting: set[str] = set()

    @cached_property
    def people(self) -> Sequence[Text]:
        """The table."""
        return people(self.case.messages)

    def close(self) -> None:
        """End every actor."""
        self.schedule.end()

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what the ledger holds, not by the product's own code."""
        return self.ledger.raw.execute(query, values).fetchall()

    def play(self) -> None:
        """Run the case."""
        for number, (try_number, task) in enumerate(self.case.attempts):
            process = f"{task}{try_number}.{number}"
            prepared = self._prepare(process, try_number, task)
            self.schedule.start(process, process, lambda prepared=prepared: self._attempt(*prepared), at_once=True)
        if self.case.jumps:
            self.schedule.start("time", "time", self._pass_time, at_once=True, is_outside=True)
        if self.case.decisions:
            self.schedule.start("person", "person", self._decide, at_once=True, is_outside=True)
        self.schedule.run()

    def finish(self) -> None:
        """Send the rest by an attempt without faults, once every claim has lapsed."""
        self.now += LATER
        self.is_free = True
        self._attempt(*self._prepare("last", 99, "a"))

    # Actors

    def _prepare(self, process: str, try_number: int, task: str) -> tuple[Any, Any]:
        """Register an attempt, which takes no step."""
        was_free, self.is_free = self.is_free, True
        who = claimant(try_number, task_id=task, host=process)
        store = self.ledger.open()
        ledger = CampaignLedger(
            store,
            CAMPAIGN,
            who,
            clock=store.clock,
            elapsed=store.clock,
            claimant_id=register(store, who),
        )
        ledger.lapse()
        self.is_free = was_free
        for name in ("holders", "states"):
            setattr(ledger, name, partial(self._read, getattr(ledger, name)))
        return store, ledger

    def _attempt(self, store: Any, ledger: CampaignLedger) -> None:
        table, stop, case = Table(self.people), StopFlag(), self.case
        reconciliation = Reconciliation(store, CAMPAIGN, "account", self._no_balance)
        on_unknown = "fail" if self.is_free else case.on_unknown
        settle = Settle(ledger, reconciliation, on_unknown, stop, self._sleep, monotonic=lambda: self.now)
        error: Exception | None = None
        try:
            with patch.object(sender_module.queue, "Queue", lambda: Mail(self)):
                sender = Sender(
                    ledger,
                    self._post,
                    post_seconds=POST_SECONDS,
                    concurrency=case.concurrency,
                    backoff=Backoff(attempts=3, base=0.0),
                    stop=stop,
                    stop_conditions=StopConditions(clock=lambda: self.now),
                    holds=settle.holds,
                    monotonic=lambda: self.now,
                )
            table.send(ledger, sender, settle, case.chunk_size)
            error = sender.error
            self.step("counts")
            was_free, self.is_free = self.is_free, True
            table.count(ledger)
            self.is_free = was_free
        except LedgerError as failure:
            error = error or failure
            table.count_without_ledger()
        summary = table.summary(CAMPAIGN)
        counts = {name: summary[name] for name in ("rows", *COUNTS)}
        self.ended.append(Ended(counts, len({key for key, _ in self.taken}), error))

    def _read(self, read: Any, *args: Any) -> Any:
        self.step("reads")
        return read(*args)

    def _pass_time(self) -> None:
        while self._takes("jumps", "passes"):
            self.now += JUMP

    def _decide(self) -> None:
        while self.left["decisions"]:
            found: list[int] = []

            def outcomes(found: list[int] = found) -> Sequence[str]:
                found[:] = self._unknown()
                return ("accepted", "not_sent") if found else ()

            chosen = self.schedule.step("decides", outcomes)
            self.left["decisions"] -= 1
            was_free, self.is_free = self.is_free, True
            store = self.ledger.open()
            resolve(store, found[0], chosen, "Ann")
            self.decided.append((found[0], chosen))
            self.is_free = was_free

    def _takes(self, budget: str, label: str) -> bool:
        if not self.left[budget]:
            return False
        self.schedule.step(label)
        self.left[budget] -= 1
        return True

    def _unknown(self) -> list[int]:
        rows = self.rows("SELECT id, state, deadline FROM sms_request ORDER BY id")
        lapsed = [each for each, state, deadline in rows if state == CLAIMED and deadline < self.now]
        return sorted([*lapsed, *(each for each, state, _ in rows if state == UNKNOWN)])

    # The service

    def _post(self, messages: Outgoing) -> SendResponse:
        faults = {"lost": ("lost", "taken, then lost"), "refused": ("refused",)}
        outcome = self.step("posts", ("taken",), faults)
        if outcome == "lost":
            raise UnknownOutcomeError("lost")
        if outcome == "refused":
            raise ThrottledError("refused", status=429)
        event = 1 + len({each for _, each in self.taken})
        self.taken += [(bytes(key), event) for key in messages.keys]
        if outcome == "taken, then lost":
            raise UnknownOutcomeError("lost")
        self.step("is answered")
        count = len(messages)
        report = ErrorReport(no_network=0, duplicates=0, opted_outs=0, faults=())
        return SendResponse(Decimal(count), Decimal(1000), event, "", count, count, (), report, {})

    def _no_balance(self) -> Any:
        raise AssertionError("the balance is not read")

    def step(self, label: str, well: Sequence[str] = ("",), faults: dict[str, Sequence[str]] | None = None) -> str:
        """Take a step of a process, which may die before it; where there is no choice, do not wait for a turn."""
        if self.is_free:
            return well[0]
        budgets = {**(faults or {}), "crashes": ("dies",)}

        def outcomes() -> Sequence[str]:
            return (*well, *(each for name, some in budgets.items() if self.left[name] for each in some))

        chosen = self.schedule.step(label, outcomes)
        for name, some in budgets.items():
            self.left[name] -= chosen in some
        if chosen == "dies":
            self.schedule.kill(self.schedule.process())
            self.schedule.step("is dead")
        return chosen

    # Time

    def _sleep(self, _: float) -> None:
        """Wait until the ledger has changed, or until nobody else can move: then time passes."""
        if self.is_free:
            self.now += JUMP
            return
        before, now, me = self._dump(), self.now, self.schedule.process()
        self._waiting.add(me)
        self.schedule.step("waits", lambda: ("",) if self._dump() != before or self.now != now else ())
        self._waiting.discard(me)

    def _idle(self) -> bool:
        self.now += JUMP
        return bool(self._waiting)

    def _dump(self) -> tuple[Any, ...]:
        return tuple(self.rows(STATE))

    def _observed(self, label: str) -> Hashable:
        if label == "posts":
            return self.now, len(self.taken)
        return self.now, self._dump() if label in ("reads", "writes", "decides", "counts") else None

    def end(self) -> Hashable:
        """Return what the end of a run is judged by."""
        ends = tuple((tuple(each.summary.items()), each.taken, each.error is None) for each in self.ended)
        return self.rows(STATE), sorted(self.taken), self.decided, ends

    def _shared(self) -> Hashable:
        return (self._dump(), tuple(self.taken), self.now, tuple(self.left.items()), tuple(self.decided))


@contextmanager
def patched(world: World) -> Iterator[None]:
    """Let the processes of a run take their steps in turn."""
    with (
        patch.object(sender_module, "WorkerPool", lambda _, work: Pool(world, work)),
        patch.object(sender_module, "POLL_SECONDS", 1000.0),
        patch.object(sender_module, "ending_by", lambda _: nullcontext()),
    ):
        yield
