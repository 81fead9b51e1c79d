"""The environment of the cases: a service, Airflows, tables, and sends that are checked message by message."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import URL

from benchmarks.airflow import Airflows, Ran, Task, postgres_ledger, sqlite_ledger
from benchmarks.data import write_table
from benchmarks.figures import median
from benchmarks.full_ledger import fill
from benchmarks.postgres import new_database, running_postgres
from benchmarks.processes import WrongError, run_job
from benchmarks.service import Service, running_service
from benchmarks.sizes import CHUNK
from benchmarks.standin import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from benchmarks.sizes import Sizes

LATENCY = 0.05
CONCURRENCY = 32
SLOW_LATENCY = 0.2
SLOW_CONCURRENCY = 4


@dataclass(frozen=True)
class Bare:
    """The figures of bare threads.

    :param rate: messages per second.
    :param cpu: CPU seconds per message.
    :param service_cpu: CPU seconds of the service per request.
    """

    rate: float
    cpu: float
    service_cpu: float


@dataclass(frozen=True)
class Round:
    """A send between two runs of bare threads.

    :param bare: mean of both runs, because the machine's speed changes.
    """

    ran: Ran
    bare: Bare


class Bench:
    """The environment of the cases, created on first use.

    :param folder: folder for all files.
    :param stack: exit stack that ends all processes.
    :param tell: function that prints a step.
    """

    def __init__(self, sizes: Sizes, folder: Path, stack: ExitStack, tell: Callable[[str], None]) -> None:
        self.sizes = sizes
        self.folder = folder
        self.tell = tell
        self._stack = stack
        self._names = 0
        self._sqlite_rounds: list[Round] = []

    @cached_property
    def service(self) -> Service:
        """A running stand-in."""
        return self._stack.enter_context(running_service(self.folder))

    @cached_property
    def airflows(self) -> Airflows:
        """Airflows, from a database that is migrated once."""
        self.tell("creating Airflow's database")
        airflows = Airflows(self.folder / "airflow", self.service, self._stack, fresh=self.sizes.fresh)
        airflows.migrate()
        return airflows

    @cached_property
    def postgres(self) -> URL:
        """A running server."""
        self.tell("starting PostgreSQL")
        return self._stack.enter_context(running_postgres())

    @cached_property
    def full_ledgers(self) -> Mapping[str, Mapping[str, str]]:
        """Airflow's settings for ledgers of many campaigns, one of them as large as the large table, by database."""
        file, database = self.folder / "full.db", new_database(self.postgres, "full_ledger")
        for url, store in ((URL.create("sqlite", database=str(file)), "SQLite"), (database, "PostgreSQL")):
            self.tell(f"creating a ledger of {self.sizes.campaigns:,} campaigns, {store}")
            fill(url, self.sizes.campaigns, self.sizes.rows)
        return {"SQLite": sqlite_ledger(file), "PostgreSQL": postgres_ledger(database)}

    def table(self, rows: int, files: int = 4) -> str:
        """Return the path of a table."""
        return write_table(self.folder / "tables", rows, files)

    def name(self, kind: str) -> str:
        """Return a unique name."""
        self._names += 1
        return f"{kind}_{self._names}"

    @property
    def small_ledger(self) -> Path:
        """The ledger of the last round with SQLite."""
        return self.folder / f"small-{len(self._sqlite_rounds)}.db"

    def task(self, rows: int, *, files: int = 4, service: Mapping[str, Any], **options: Any) -> Task:
        """Return a task that sends a table by our operator, in one campaign.

        :param service: settings of the service.
        """
        return Task("ours", {"source": self.table(rows, files), "campaign": "benchmark", **options}, dict(service))

    def send(self, task: Task, ledger: Mapping[str, str], rows: int) -> Ran:
        """Run a task, and check that everybody was texted once.

        :raises WrongError: when the check fails, or the task did not succeed.
        """
        (ran,) = self.airflows.run([task], ledger)
        check(ran, rows)
        return ran

    def bare(self, threads: int = CONCURRENCY, latency: float = LATENCY, rows: int | None = None) -> Bare:
        """Run bare threads.

        :param rows: messages to post; None means as many as usual.
        """
        rows = self.sizes.bare if rows is None else rows
        source = self.table(self.sizes.small)
        job = {"source": source, "rows": rows, "port": self.service.port, "threads": threads, "latency": latency}
        result = run_job(self.folder / "bare", "benchmarks.bare", job)
        counters = Counters(**result["counters"])
        if counters.messages != rows:
            raise WrongError(f"bare threads: {counters.messages} messages of {rows}")
        return Bare(counters.rate, result["used"]["cpu"] / rows, counters.cpu / counters.posts)

    def rounds(self, runs: int, ledger: Callable[[int], Mapping[str, str]], what: str) -> list[Round]:
        """Send the small table several times at the usual latency, with bare threads before and after each send.

        :param ledger: returns the ledger's settings for each round, by its number from 1.
        """
        task = self.task(self.sizes.small, service={"latency": LATENCY}, concurrency=CONCURRENCY)
        self.tell("posting by bare threads")
        rounds, before = [], self.bare()
        for number in range(1, runs + 1):
            self.tell(f"sending {self.sizes.small:,} rows, {what}, {number} of {runs}")
            ran = self.send(task, ledger(number), self.sizes.small)
            after = self.bare()
            rounds.append(Round(ran, _mean(before, after)))
            before = after
        return rounds

    def sqlite_rounds(self) -> list[Round]:
        """Return the rounds with SQLite, which several cases use."""
        if not self._sqlite_rounds:
            self._sqlite_rounds = self.rounds(
                self.sizes.runs, lambda number: sqlite_ledger(self.folder / f"small-{number}.db"), "SQLite"
            )
        return self._sqlite_rounds


def check(ran: Ran, rows: int) -> None:
    """Raise unless as many people as there are rows were texted, each once.

    :raises WrongError: when a message is missing or repeated.
    """
    found = (ran.counters.messages, ran.distinct, ran.summary["rows"], ran.summary["accepted"])
    if found != (rows,) * 4:
        raise WrongError(
            f"{rows} rows: {found[0]} messages to {found[1]} people; its summary: {found[2]} rows, {found[3]} accepted"
        )


def ideal(concurrency: int, latency: float) -> float:
    """Return the messages per second of a sender without any cost of its own."""
    return concurrency / latency * CHUNK


def ledger_bytes(path: Path) -> int:
    """Return the size of a SQLite ledger after a checkpoint of its log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def _mean(one: Bare, other: Bare) -> Bare:
    return Bare(
        median((one.rate, other.rate)),
        median((one.cpu, other.cpu)),
        median((one.service_cpu, other.service_cpu)),
    )
