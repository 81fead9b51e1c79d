"""Real Airflows: each run of tasks in a process of its own, with a home of its own."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.processes import WrongError, python, run_job
from benchmarks.standin import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sqlalchemy.engine import URL

    from benchmarks.service import Service

MIGRATE_SECONDS = 300.0
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
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template"
        self._made = 0

    def migrate(self) -> None:
        """Make the database that the others are copied from.

        :raises WrongError: it could not be made.
        """
        self._template.mkdir(parents=True)
        log = self._template / "migrate.log"
        settings = _settings(self._template)
        with python(self._template, "-m", "airflow", "db", "migrate", log=log, settings=settings) as process:
            if process.wait(MIGRATE_SECONDS):
                raise WrongError(f"airflow db migrate: {log.read_text()[-2000:]}")

    def run(self, tasks: Sequence[Task], service: Service, settings: Mapping[str, str]) -> list[Ran]:
        """Run tasks one after the other, each in a DAG of its own, in one fresh process.

        :param service: that they send to.
        :param settings: more environment variables, such as a ledger's.
        :raises WrongError: a task did not succeed.
        """
        self._made += 1
        home = self._folder / f"home-{self._made}"
        shutil.copytree(self._template, home)
        connections = {
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps({"conn_type": "sms", "host": service.url, "password": TOKEN}),
            "AIRFLOW_CONN_HTTP_DEFAULT": json.dumps({"conn_type": "http", "host": service.url}),
        }
        job = {"port": service.port, "tasks": [asdict(task) for task in tasks]}
        try:
            variables = {**_settings(home), **connections, **settings}
            results = run_job(home, "benchmarks.tasks", job, settings=variables)
            ran = [Ran(**{**result, "counters": Counters(**result["counters"])}) for result in results]
            if any(each.state != "success" for each in ran):
                log = (home / "output.log").read_text(errors="replace")
                raise WrongError(f"a task ended as {[each.state for each in ran]}: {log[-3000:]}")
            return ran
        finally:
            shutil.rmtree(home, ignore_errors=True)


def sqlite_ledger(path: Path) -> dict[str, str]:
    """Give the settings for a ledger in a file."""
    return {"AIRFLOW__SMS__LEDGER_PATH": str(path)}


def _settings(home: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
    }


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
