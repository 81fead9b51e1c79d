"""A real Airflow with its own home, which runs DAGs and reads their results from its database."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demo.processes import environment, finish, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

MIGRATE_SECONDS = 120.0
RUN_SECONDS = 180.0
READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a DAG run.

    :param state: state of the run.
    :param states: state of each task.
    :param xcoms: XComs: task → key → value.
    :param output: the whole output of Airflow.
    """

    state: str
    states: dict[str, str]
    xcoms: dict[str, dict[str, Any]]
    output: str


class Workflow:
    """An Airflow home.

    :param checkout: the project's folder, which contains the DAGs.
    :param folder: folder for the home and the logs.
    :param connection: the connection ``sms_default``.
    """

    def __init__(self, checkout: Path, folder: Path, connection: dict[str, str]) -> None:
        self._checkout = checkout
        self._folder = folder
        self.home = folder / "airflow"
        self.ledger = self.home / "sms_ledger.db"
        self._environment = environment(
            folder / "home",
            {
                "AIRFLOW_HOME": str(self.home),
                "AIRFLOW__CORE__DAGS_FOLDER": str(checkout / "dags"),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(connection),
            },
        )

    def migrate(self) -> None:
        """Create the database.

        :raises DemoError: when the migration fails.
        """
        log = self._folder / "migrate.log"
        with self._python(log, "-m", "airflow", "db", "migrate") as process:
            finish(process, seconds=MIGRATE_SECONDS, what="airflow db migrate", log=log)

    @contextmanager
    def starting(self, dag_id: str, logical_date: datetime, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a DAG with ``airflow dags test``. Leaving the context waits for the end of the run.

        :param log: file for the output.
        :raises DemoError: when the run fails or takes too long.
        """
        with self._python(log, "-m", "airflow", "dags", "test", dag_id, logical_date.isoformat()) as process:
            yield process
            finish(process, seconds=RUN_SECONDS, what=f"airflow dags test {dag_id}", log=log)

    def read(self, dag_id: str, logical_date: datetime, log: Path) -> Run:
        """Return a run and its XComs from Airflow's database.

        :param log: output of the run.
        :raises DemoError: when there is no such run.
        """
        result = log.with_suffix(".json")
        errors = log.with_suffix(".read.log")
        with self._python(errors, "-m", "demo.read_run", dag_id, logical_date.isoformat(), str(result)) as process:
            finish(process, seconds=READ_SECONDS, what="reading the run from Airflow's database", log=errors)
        return Run(**json.loads(result.read_bytes()), output=log.read_text())

    @contextmanager
    def _python(self, log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, *arguments]
        with running(command, env=self._environment, cwd=self._checkout, log=log) as process:
            yield process
