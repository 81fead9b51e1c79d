"""A real Airflow in which sends wait for credit and send windows, and are paused and killed, all at once."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.fernet import Fernet
from sqlalchemy import text

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.faults.airflow import TOKEN, a_ledger, leaks
from support.faults.campaigns import MESSAGE
from support.faults.rest import ENDED, RUN_SECONDS, until
from support.faults.standalone import running_airflow

if TYPE_CHECKING:
    from pathlib import Path

RUN, TASK = "once", "send"
FIRST, EACH = 27_820_000_000, 100_000
"""The first number, and the quantity of numbers for each scenario."""
TIMEOUTS = {"timeout": 10, "connect_timeout": 2}
"""Timeouts of the client in seconds; an attempt waits slightly longer for the requests of a killed one."""
EVERY = 1.0
"""Seconds between two polls of Airflow by a scenario, because many scenarios poll at once."""

DAGS = """
from datetime import datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.send_window.window import SendWindow


class HoursOfFile:
    recipient_time_zone = False

    def __init__(self, path):
        self.path = Path(path)

    def closed_until(self, now, destination=None):
        if not self.path.exists():
            return None
        opening = datetime.fromisoformat(self.path.read_text())
        return opening if now < opening else None


def made(options):
    if "hours" in options:
        options["send_window"] = SendWindow(**options.pop("hours"))
    if "hours_of" in options:
        options["send_window"] = HoursOfFile(options.pop("hours_of"))
    return options


for dag_id, options in {dags!r}.items():
    with DAG(dag_id, schedule=None, default_args={{"retries": 2, "retry_delay": 1}}) as dag:
        BulkSmsOperator(task_id={task!r}, message={message!r}, sms_conn_id=dag_id, **made(options))
    globals()[dag_id] = dag
"""

SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "6",
    # Airflow notices a killed triggerer within seconds.
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
}

_UNDER_WAY = text(
    "SELECT count(*) FROM sms_request r JOIN sms_attempt k ON k.id = r.attempt_id "
    "WHERE k.dag_id = :dag_id AND r.state = 'claimed'"
)
_ONE_AT_A_TIME = threading.Lock()
"""Lock for requests that write: Airflow's SQLite database fails simultaneous ones."""
_LAST_PID = text("SELECT k.pid FROM sms_attempt k WHERE k.dag_id = :dag_id ORDER BY k.id DESC LIMIT 1")


@dataclass
class Stage:
    """One scenario with its own people and service, and the observations of it.

    :param service: the sandbox's memory.
    :param ledger: an engine that reads it.
    :param people: the numbers, in table order.
    :param waited: the task instance at each wait, and the messages that the service had accepted by then.
    :param end: the task instance at its end.
    :param seen: further observations of the scenario.
    """

    dag_id: str
    service: Any
    ledger: Any
    folder: Path
    people: list[str]
    airflow: Any = None
    waited: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self):
        return self.folder / f"{self.dag_id}.parquet"

    def write_source(self):
        """Write the table of the people."""
        names = [f"Name{number}" for number in range(len(self.people))]
        pq.write_table(pa.table({"destination": self.people, "first_name": names}), self.source)

    # The service's observations

    def taken(self):
        """Return the number of accepted messages."""
        return len(self.service.accepted)

    def texted(self):
        """Return how often the service was asked to text each person, and how often it accepted."""
        return Counter(message.destination for message in self.service.accepted)

    def requests(self):
        """Return the send requests that have a response."""
        return [request for request in self.service.requests if request.operation == "bulk"]

    def be_late(self, seconds):
        """Delay all further responses."""
        self.service.set_faults([{"kind": "delay", "seconds": seconds, "persistent": True}])

    def await_taken(self, count):
        what = f"{count} messages of {self.dag_id} were taken"
        until(lambda: self.taken() >= count, seconds=RUN_SECONDS, what=what)

    # The state of Airflow and the ledger

    def trigger(self):
        with _ONE_AT_A_TIME:
            self.airflow.trigger(self.dag_id, RUN)

    def instance(self):
        (instance,) = self.airflow.instances(self.dag_id, RUN)
        return instance

    def await_wait(self):
        """Wait until the task waits or has ended; a later check tells which."""
        self.waited.append((self._await_state("deferred", *ENDED), self.taken()))
        what = f"the scheduler knows that {self.dag_id} waits"
        until(lambda: self._processes_ended() >= len(self.waited), seconds=RUN_SECONDS, what=what, every=EVERY)

    def _processes_ended(self):
        """Return the number of the task's processes whose end the scheduler has recorded.

        Airflow 3.3 treats a task that resumes before that as failed, and retries it.
        """
        lines = (self.airflow.home / "standalone-0.out").read_text(errors="replace").splitlines()
        return sum("Received executor event" in line and f"dag_id='{self.dag_id}'" in line for line in lines)

    def await_end(self):
        self.end = self._await_state(*ENDED)
        self.summary = self.xcom("return_value")
        logs = [path for path in (self.airflow.home / "logs").rglob("*.log") if f"dag_id={self.dag_id}" in str(path)]
        self.log = "".join(path.read_text() for path in sorted(logs))

    def _await_state(self, *states):
        def there():
            instance = self.instance()
            return instance if instance["state"] in states else None

        what = f"the task of {self.dag_id} is {' or '.join(states)}"
        return until(there, seconds=RUN_SECONDS, what=what, every=EVERY)

    def xcom(self, key):
        return self.airflow.xcom(self.dag_id, RUN, TASK, key)

    def command(self, name, *options):
        """Run a ledger command for the campaign."""
        return self.airflow.ledger_command(name, f"{self.dag_id}/{TASK}/{RUN}", *options)

    def status(self):
        """Return the output of the command show for the campaign."""
        (status,) = json.loads(self.command("show", "-o", "json").stdout)
        return status

    def pid(self):
        """Return the process that entered the ledger last."""
        return self._ask_ledger(_LAST_PID)

    def under_way(self):
        """Return the number of claimed requests without an outcome."""
        return self._ask_ledger(_UNDER_WAY)

    def _ask_ledger(self, question):
        with self.ledger.connect() as connection:
            return connection.execute(question, {"dag_id": self.dag_id}).scalar()


@dataclass(frozen=True)
class Played:
    """The results of all scenarios.

    :param stages: stages by scenario name.
    :param triggers: class and arguments of all triggers at the time when the triggerer was killed.
    :param leaking: logs that contain a number, a text or the token.
    """

    stages: dict[str, Stage]
    triggers: list[tuple[str, str]]
    leaking: list[str]


def play_all(folder, scenarios):
    """Run scenarios at the same time, and replace the triggerer by a new one once all of them wait.

    :param folder: an empty one.
    """
    home = folder / "airflow"
    (home / "dags").mkdir(parents=True)
    with ExitStack() as stack:
        settings, ledger = stack.enter_context(a_ledger("sqlite", folder))
        settings.update(SETTINGS)
        stages, dags = {}, {}
        for number, each in enumerate(scenarios):
            sandbox = stack.enter_context(running_sandbox(SandboxConfig(token=TOKEN, balance=each.balance)))
            connection = {"conn_type": "sms", "host": sandbox.base_url, "password": TOKEN, "extra": TIMEOUTS}
            settings[f"AIRFLOW_CONN_{each.dag_id.upper()}"] = json.dumps(connection)
            people = [str(FIRST + number * EACH + n) for n in range(each.people)]
            stage = stages[each.dag_id] = Stage(each.dag_id, sandbox.state, ledger, folder, people)
            stage.write_source()
            dags[each.dag_id] = {"source": str(stage.source), **each.options(stage)}
        (home / "dags" / "scenarios.py").write_text(DAGS.format(dags=dags, task=TASK, message=MESSAGE))
        airflow = stack.enter_context(running_airflow(home, settings))
        for stage in stages.values():
            stage.airflow = airflow
        plays = [each.play(stages[each.dag_id]) for each in scenarios]
        with ThreadPoolExecutor(len(plays)) as pool:
            list(pool.map(next, plays))
            waiting = triggers(home)
            airflow.kill_triggerer()
            airflow.start_triggerer()
            list(pool.map(list, plays))
    people = {number for stage in stages.values() for number in stage.people}
    return Played(stages, waiting, leaks(home, people))


def triggers(home):
    """Return class and arguments of an Airflow's stored triggers, as a triggerer reads them."""
    settings = ConfigParser(interpolation=None)
    settings.read(home / "airflow.cfg")
    key = Fernet(settings["core"]["fernet_key"])
    with closing(sqlite3.connect(f"file:{home}/airflow.db?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT classpath, kwargs FROM trigger").fetchall()
    # Airflow encrypts the arguments in some of its processes, and reads both forms.
    return [(name, kept if kept.startswith("{") else key.decrypt(kept.encode()).decode()) for name, kept in rows]
