"""What the cases share: a service, Airflows, tables, and sends that are checked to the message."""

from __future__ import annotations

import shutil
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
from benchmarks.postgres import copied_database, new_database, running_postgres
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


@dataclass(frozen=True)
class Bare:
    """What bare threads came to.

    :param rate: messages a second.
    :param cpu: seconds a message.
    :param service_cpu: seconds of the service a request.
    """

    rate: float
    cpu: float
    service_cpu: float


@dataclass(frozen=True)
class Round:
    """A send between two runs of bare threads.

    :param bare: the mean of both: the machine's speed changes.
    """

    ran: Ran
    bare: Bare


@dataclass(frozen=True)
class FullLedger:
    """A ledger of many campaigns.

    :param ledger: the settings that lead to it.
    :param other: those that lead to a copy of it, by which nothing is sent.
    """

    ledger: Mapping[str, str]
    other: Mapping[str, str]


class Bench:
    """Everything that cases run on; made when it is first asked for.

    :param folder: gets everything.
    :param stack: ends what was started.
    :param tell: says what is being done.
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
        self.tell("Airflow's database is made")
        airflows = Airflows(self.folder / "airflow", self.service, self._stack, fresh=self.sizes.fresh)
        airflows.migrate()
        return airflows

    @cached_property
    def postgres(self) -> URL:
        """A running server."""
        self.tell("PostgreSQL is started")
        return self._stack.enter_context(running_postgres())

    @cached_property
    def full_ledgers(self) -> Mapping[str, FullLedger]:
        """Ledgers with many campaigns, one of them as large as the large table, by database."""
        file, database = self.folder / "full.db", new_database(self.postgres, "full_ledger")
        for url, store in ((URL.create("sqlite", database=str(file)), "SQLite"), (database, "PostgreSQL")):
            self.tell(f"a ledger of {self.sizes.campaigns:,} campaigns is made, {store}")
            fill(url, self.sizes.campaigns, self.sizes.rows)
        other_file, other = self.folder / "full-other.db", copied_database(self.postgres, database, "full_ledger_other")
        shutil.copyfile(file, other_file)
        return {
            "SQLite": FullLedger(sqlite_ledger(file), sqlite_ledger(other_file)),
            "PostgreSQL": FullLedger(postgres_ledger(database), postgres_ledger(other)),
        }

    def table(self, rows: int, files: int = 4) -> str:
        """Give the path of a table."""
        return write_table(self.folder / "tables", rows, files)

    def name(self, kind: str) -> str:
        """Give a name that no other has."""
        self._names += 1
        return f"{kind}_{self._names}"

    @property
    def small_ledger(self) -> Path:
        """The ledger of the last round with SQLite."""
        return self.folder / f"small-{len(self._sqlite_rounds)}.db"

    def task(self, rows: int, *, files: int = 4, way: str = "ours", service: Mapping[str, Any], **options: Any) -> Task:
        """Make a task that sends a table by our operator, in one campaign.

        :param service: how it answers.
        """
        arguments = {
            "source": self.table(rows, files),
            "campaign": "benchmark",
            "max_xcom_responses": self.sizes.max_xcom_responses,
            **options,
        }
        return Task(way, arguments, dict(service))

    def send(self, task: Task, ledger: Mapping[str, str], rows: int) -> Ran:
        """Run a task, and see that everybody was texted once.

        :raises WrongError: when not, or the task did not succeed.
        """
        (ran,) = self.airflows.run([task], ledger)
        check(ran, rows)
        return ran

    def bare(self, threads: int = CONCURRENCY, latency: float = LATENCY) -> Bare:
        """Run bare threads."""
        rows = self.sizes.bare
        source = self.table(self.sizes.small)
        job = {"source": source, "rows": rows, "port": self.service.port, "threads": threads, "latency": latency}
        result = run_job(self.folder / "bare", "benchmarks.bare", job)
        counters = Counters(**result["counters"])
        if counters.messages != rows:
            raise WrongError(f"bare threads: {counters.messages} messages of {rows}")
        return Bare(counters.rate, result["used"]["cpu"] / rows, counters.cpu / counters.posts)

    def rounds(self, runs: int, ledger: Callable[[int], Mapping[str, str]], what: str) -> list[Round]:
        """Send the small table several times at the usual pace, bare threads before and after each.

        :param ledger: gives the settings of each round's, by its number from 1.
        """
        task = self.task(self.sizes.small, service={"latency": LATENCY}, concurrency=CONCURRENCY)
        self.tell("bare threads post")
        rounds, before = [], self.bare()
        for number in range(1, runs + 1):
            self.tell(f"{self.sizes.small:,} rows are sent, {what}, {number} of {runs}")
            ran = self.send(task, ledger(number), self.sizes.small)
            after = self.bare()
            rounds.append(Round(ran, _mean(before, after)))
            before = after
        return rounds

    def sqlite_rounds(self) -> list[Round]:
        """Give the rounds with SQLite, which several cases look at."""
        if not self._sqlite_rounds:
            self._sqlite_rounds = self.rounds(
                self.sizes.runs, lambda number: sqlite_ledger(self.folder / f"small-{number}.db"), "SQLite"
            )
        return self._sqlite_rounds


def check(ran: Ran, rows: int) -> None:
    """See that each of as many people as there are rows was texted, once.

    :raises WrongError: when not.
    """
    found = (ran.counters.messages, ran.distinct, ran.summary["rows"], ran.summary["accepted"])
    if found != (rows,) * 4:
        raise WrongError(
            f"{rows} rows: {found[0]} messages to {found[1]} people; its summary: {found[2]} rows, {found[3]} accepted"
        )


def ideal(concurrency: int, latency: float) -> float:
    """Give the messages a second of a sender that costs nothing."""
    return concurrency / latency * CHUNK


def ledger_bytes(path: Path) -> int:
    """Give the size of a SQLite ledger, once its log is written into it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def _mean(one: Bare, other: Bare) -> Bare:
    return Bare(
        median((one.rate, other.rate)),
        median((one.cpu, other.cpu)),
        median((one.service_cpu, other.service_cpu)),
    )
