"""The environment of the cases: sizes, a service, Airflows, ledgers, and sends that are checked message by message."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from sqlalchemy.engine import URL

from benchmarks.data import table_of_people
from benchmarks.ledgers import execute, running_postgres, settings_of
from benchmarks.service import Counters, reset
from demo.processes import answering, python, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager, ExitStack
    from pathlib import Path

LATENCY = 0.05
CONCURRENCY = 32
BARE = 500_000
"""Messages to post by bare threads, at most."""


class WrongError(Exception):
    """The measured code produced a wrong result, which makes its times meaningless."""


@dataclass(frozen=True)
class Sizes:
    """Rows and runs.

    :param rows: rows of the large table; the small one has a tenth.
    :param campaigns: campaigns in the full ledger, for the pages.
    :param runs: repetitions of the cheaper cases.
    """

    rows: int = 10_000_000
    campaigns: int = 50_000
    runs: int = 3

    @property
    def small(self) -> int:
        """Rows of the small table."""
        return self.rows // 10


# The small table exceeds the limit of responses in an XCom, too.
QUICK = Sizes(rows=110_000, campaigns=200, runs=1)


class Ran(NamedTuple):
    """The result of a task.

    :param cpu: CPU seconds of ``execute``, over all threads.
    :param wall: elapsed seconds of ``execute``.
    :param whole: elapsed seconds from the import of the operator to the end of the DAG run.
    :param peak: peak memory of the process during ``execute``, in bytes.
    :param xcoms: the task's XComs.
    :param counters: counters of the service since the start of the task.
    """

    cpu: float
    wall: float
    whole: float
    peak: int
    xcoms: dict[str, Any]
    counters: Counters


class Bare(NamedTuple):
    """Messages a second of bare threads, and their CPU seconds a message."""

    rate: float
    cpu: float


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

    @cached_property
    def _port(self) -> int:
        """Where the stand-in of the service listens."""
        served = answering("benchmarks.service", None, home=self.folder / "service", settings={})
        return int(self._stack.enter_context(served))

    @cached_property
    def _postgres(self) -> URL:
        self.tell("starting PostgreSQL")
        return self._stack.enter_context(running_postgres())

    @cached_property
    def _template(self) -> Path:
        """Airflow's home with its database, which is copied."""
        self.tell("creating Airflow's database")
        home = self.folder / "template"
        (home / "dags").mkdir(parents=True)
        log, settings = home / "migrate.log", self._settings(home)
        with python("-m", "airflow", "db", "migrate", home=home, log=log, settings=settings) as process:
            wait(process, log, seconds=600.0)
        return home

    def _settings(self, home: Path) -> dict[str, str]:
        url = f"http://127.0.0.1:{self._port}/v1"
        return {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps({"conn_type": "sms", "host": url, "password": "any"}),
        }

    def airflow(self, module: str, ledger: URL, job: Any = None, **settings: str) -> AbstractContextManager[Any]:
        """Run a module with a job in a new Airflow; see :func:`demo.processes.answering`.

        :param settings: further settings of Airflow.
        """
        home = self.folder / f"home_{uuid4().hex}"
        shutil.copytree(self._template, home)
        every = {**self._settings(home), **settings_of(ledger), **settings}
        return answering(module, job, home=home, settings=every)

    def new_ledger(self, store: str) -> URL:
        """Return a new SQLite file, or an empty database of PostgreSQL."""
        name = f"ledger_{uuid4().hex}"
        if store == "SQLite":
            return URL.create("sqlite", database=str(self.folder / f"{name}.db"))
        execute(self._postgres, f"CREATE DATABASE {name}")
        return self._postgres.set(database=name)

    def run(self, ledger: URL, latency: float = 0.0, arguments: Mapping[str, Any] | None = None) -> Ran:
        """Run a task in a new Airflow.

        :param arguments: arguments of our operator; None for a task that does nothing.
        """
        reset(self._port, latency)
        with self.airflow("benchmarks.task", ledger, arguments) as ran:
            return Ran(**ran, counters=reset(self._port))

    def send(
        self, rows: int, ledger: URL, latency: float = LATENCY, concurrency: int = CONCURRENCY, *, again: bool = False
    ) -> Ran:
        """Send a table by our operator, in one campaign.

        :param again: whether everybody has been texted already.
        :raises WrongError: unless everybody was texted once.
        """
        self.tell(f"sending {rows:,} rows{' again' * again}, {ledger.get_backend_name()}")
        source = table_of_people(self.folder / "tables", rows)
        ran = self.run(ledger, latency, {"source": source, "concurrency": concurrency})
        check(ran, rows, again=again)
        return ran

    def bare(self, rows: int | None = None, latency: float = LATENCY, threads: int = CONCURRENCY) -> Bare:
        """Run bare threads.

        :param rows: messages to post; None means as many as usual.
        """
        rows = rows or min(BARE, self.sizes.small)
        self.tell(f"posting {rows:,} messages by bare threads")
        source = table_of_people(self.folder / "tables", self.sizes.small)
        reset(self._port, latency)
        job = (self._port, source, rows, threads)
        with answering("benchmarks.bare", job, home=self.folder / "bare", settings={}) as cpu:
            told = reset(self._port)
        if told.messages != rows:
            raise WrongError(f"bare threads: {told.messages} messages of {rows}")
        return Bare(told.rate, cpu / rows)

    def rounds(self, store: str) -> tuple[list[tuple[Ran, Bare]], URL]:
        """Send the small table several times, between bare threads, and return the last ledger, too.

        The machine's speed changes: a send is compared with the mean of the bare threads before and after it.
        """
        rounds, before = [], self.bare()
        for _ in range(self.sizes.runs):
            ledger = self.new_ledger(store)
            ran, after = self.send(self.sizes.small, ledger), self.bare()
            rounds.append((ran, Bare(*map(mean, zip(before, after, strict=True)))))
            before = after
        return rounds, ledger

    @cached_property
    def sqlite_rounds(self) -> tuple[list[tuple[Ran, Bare]], URL]:
        """The rounds with SQLite, which several cases use."""
        return self.rounds("SQLite")


def check(ran: Ran, rows: int, *, again: bool = False) -> None:
    """Raise unless everybody was texted once.

    :param again: whether that was before, so that nobody may be.
    :raises WrongError: when a message is missing or repeated.
    """
    new, already = (0, rows) if again else (rows, 0)
    summary = [ran.xcoms["return_value"][name] for name in ("rows", "accepted", "already_sent")]
    if (ran.counters.messages, ran.counters.people, *summary) != (new, new, rows, new, already):
        raise WrongError(f"{rows} rows: {ran.counters}; rows, accepted and already sent are {summary}")
