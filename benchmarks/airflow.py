"""Real Airflows, processes with homes of their own, that run tasks and say what became of them."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.processes import WrongError, end_of, put, python, wait_for
from benchmarks.standin import Counters

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from sqlalchemy.engine import URL

    from benchmarks.service import Service

MIGRATE_SECONDS = 300.0
RUN_SECONDS = 3_600.0
TOKEN = "benchmark-token"  # noqa: S105 - the stand-in asks for none


@dataclass(frozen=True)
class Task:
    """A task to run.

    :param way: one of :data:`benchmarks.ways.WAYS`.
    :param arguments: of the way.
    :param service: how the service answers meanwhile; see :class:`benchmarks.standin.Settings`.
    """

    way: str
    arguments: dict[str, Any]
    service: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """What became of a task.

    :param state: of the run.
    :param cpu: seconds of ``execute``, all threads.
    :param wall: seconds of ``execute``.
    :param peak: bytes that the process has held at most while it executed.
    :param xcom_bytes: written by the task.
    :param xcom_shape: the same, with every number as 0: what it is but for its digits.
    :param summary: what it returned.
    :param seen: what the way of sending saw itself.
    :param counters: of the service, from the task's beginning on.
    :param distinct: people who were texted.
    """

    state: str
    cpu: float
    wall: float
    peak: int
    xcom_bytes: int
    xcom_shape: str
    summary: dict[str, Any]
    seen: dict[str, Any]
    counters: Counters
    distinct: int

    @property
    def rate(self) -> float:
        """Give the messages a second from the first request to the last answer."""
        return self.counters.rate


class Airflows:
    """Makes Airflows, from a database that is migrated once.

    :param folder: gets them.
    :param service: that their connections lead to.
    :param fresh: whether each run gets a process of its own; else one serves all, which saves the seconds that Airflow
        takes to begin.
    :param stack: ends that one.
    """

    def __init__(self, folder: Path, service: Service, stack: ExitStack, *, fresh: bool) -> None:
        self._folder = folder
        self._service = service
        self._stack = stack
        self._fresh = fresh
        self._template = folder / "template"
        self._made = 0
        self._kept: _Worker | None = None

    def migrate(self) -> None:
        """Make the database that the others are copied from.

        :raises WrongError: it could not be made.
        """
        self._template.mkdir(parents=True)
        log = self._template / "migrate.log"
        settings = self._settings(self._template)
        with python(self._template, "-m", "airflow", "db", "migrate", log=log, settings=settings) as process:
            if process.wait(MIGRATE_SECONDS):
                raise WrongError(f"airflow db migrate: {log.read_text()[-2000:]}")

    def run(self, tasks: Sequence[Task], ledger: Mapping[str, str]) -> list[Ran]:
        """Run tasks one after the other, each in a DAG of its own.

        :param ledger: Airflow's settings that lead to the ledger.
        :raises WrongError: a task did not succeed.
        """
        job = {"port": self._service.port, "ledger": dict(ledger), "tasks": [asdict(task) for task in tasks]}
        if self._fresh:
            with self._worker() as worker:
                return worker.run(job)
        self._kept = self._kept or self._stack.enter_context(self._worker())
        return self._kept.run(job)

    @contextmanager
    def process(
        self, module: str, settings: Mapping[str, str] | None = None
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path, Path]]:
        """Run ``python -m module HOME`` in an Airflow of its own, and give the process, its home and its output.

        :param settings: more variables.
        """
        self._made += 1
        home = self._folder / f"home-{self._made}"
        shutil.copytree(self._template, home)
        log = home / "output.log"
        try:
            variables = {**self._settings(home), **(settings or {})}
            with python(home, "-m", module, str(home), log=log, settings=variables) as process:
                yield process, home, log
        finally:
            shutil.rmtree(home, ignore_errors=True)

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        with self.process("benchmarks.tasks") as (process, home, log):
            yield _Worker(process, home, log)

    def _settings(self, home: Path) -> dict[str, str]:
        url = self._service.url
        return {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps({"conn_type": "sms", "host": url, "password": TOKEN}),
            "AIRFLOW_CONN_HTTP_DEFAULT": json.dumps({"conn_type": "http", "host": url}),
        }


class _Worker:
    """A process that runs tasks.

    :param home: where it looks for jobs, and puts their results.
    """

    def __init__(self, process: subprocess.Popen[bytes], home: Path, log: Path) -> None:
        self._process = process
        self._home = home
        self._log = log
        self._jobs = 0

    def run(self, job: Any) -> list[Ran]:
        """Run the tasks of a job."""
        job_path, result = (self._home / f"{kind}-{self._jobs}.json" for kind in ("job", "result"))
        self._jobs += 1
        put(job_path, job)
        wait_for(result.exists, self._process, self._log, seconds=RUN_SECONDS)
        all_ran = [Ran(**{**ran, "counters": Counters(**ran["counters"])}) for ran in json.loads(result.read_bytes())]
        if any(ran.state != "success" for ran in all_ran):
            raise WrongError(f"tasks ended as {[ran.state for ran in all_ran]}: {end_of(self._log)}")
        return all_ran


def sqlite_ledger(path: Path) -> dict[str, str]:
    """Give the settings for a ledger in a file."""
    return {"AIRFLOW__SMS__LEDGER_PATH": str(path)}


def postgres_ledger(url: URL) -> dict[str, str]:
    """Give the settings for a ledger in a PostgreSQL database."""
    connection = {
        "conn_type": "postgres",
        "host": url.host or url.query["host"],
        "login": url.username,
        "password": url.password,
        "port": url.port,
        "schema": url.database,
    }
    return {"AIRFLOW_CONN_SMS_LEDGER": json.dumps(connection), "AIRFLOW__SMS__LEDGER_CONN_ID": "sms_ledger"}
