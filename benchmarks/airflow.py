"""Real Airflows, in processes with their own homes, that run tasks and return the results."""

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
TOKEN = "benchmark-token"  # noqa: S105 - the stand-in checks none


@dataclass(frozen=True)
class Task:
    """A task to run.

    :param way: one of :data:`benchmarks.ways.WAYS`.
    :param arguments: arguments of the way.
    :param service: the service's settings meanwhile; see :class:`benchmarks.standin.Settings`.
    """

    way: str
    arguments: dict[str, Any]
    service: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """The result of a task.

    :param state: state of the run.
    :param cpu: CPU seconds of ``execute``, over all threads.
    :param wall: elapsed seconds of ``execute``.
    :param whole: elapsed seconds from the import of the operator to the end of the DAG run.
    :param peak: peak memory of the process during ``execute``, in bytes.
    :param xcom_bytes: bytes of the task's XComs.
    :param xcom_shape: the XComs with every number, id and markdown replaced by 0, to compare them regardless of digits.
    :param summary: the task's return value.
    :param counters: counters of the service since the start of the task.
    :param distinct: number of different people who were texted.
    """

    state: str
    cpu: float
    wall: float
    whole: float
    peak: int
    xcom_bytes: int
    xcom_shape: str
    summary: dict[str, Any]
    counters: Counters
    distinct: int

    @property
    def rate(self) -> float:
        """Return the messages per second from the first request to the last response."""
        return self.counters.rate


class Airflows:
    """Creates Airflows from a database that is migrated once.

    :param folder: folder for the homes.
    :param service: the service that their connections point to.
    :param fresh: whether each run has its own process; otherwise one serves all, which saves the seconds that Airflow
        needs to start.
    :param stack: exit stack that ends the shared process.
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
        """Create the database that all others are copied from.

        :raises WrongError: when the migration fails.
        """
        self._template.mkdir(parents=True)
        log = self._template / "migrate.log"
        settings = self._settings(self._template)
        with python(self._template, "-m", "airflow", "db", "migrate", log=log, settings=settings) as process:
            if process.wait(MIGRATE_SECONDS):
                raise WrongError(f"airflow db migrate: {log.read_text()[-2000:]}")

    def run(self, tasks: Sequence[Task], ledger: Mapping[str, str]) -> list[Ran]:
        """Run tasks one after the other, each in its own DAG.

        :param ledger: Airflow's settings for the ledger.
        :raises WrongError: when a task did not succeed.
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
        """Run ``python -m module HOME`` in a new Airflow, and yield the process, its home and its output.

        :param settings: additional environment variables.
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
        }


class _Worker:
    """A process that runs tasks.

    :param home: folder of the jobs and their results.
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
    """Return Airflow's settings for a ledger in a file."""
    return {"AIRFLOW__SMS__LEDGER_PATH": str(path)}


def postgres_ledger(url: URL) -> dict[str, str]:
    """Return Airflow's settings for a ledger in a PostgreSQL database."""
    connection = {
        "conn_type": "postgres",
        "host": url.host or url.query["host"],
        "login": url.username,
        "password": url.password,
        "port": url.port,
        "schema": url.database,
    }
    return {"AIRFLOW_CONN_SMS_LEDGER": json.dumps(connection), "AIRFLOW__SMS__LEDGER_CONN_ID": "sms_ledger"}
