"""Airflow with the CeleryExecutor and two workers; none of its processes outlives the block.

Scheduler, DAG processor, triggerer, API server and services are in the middle. A worker has an AIRFLOW_HOME, a host
name and logs of its own; it shares the folders ``dags`` and ``tables`` with all, and with the middle the database.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from contextlib import ExitStack, contextmanager, suppress

import psutil
import requests

from support.faults.rest import READY_SECONDS, RestApi
from support.faults.standalone import environment, free_port
from support.forwarder import Forwarder
from support.machines.services import HOST, LEDGER, METADATA, TOKEN, deployed_settings, init_command, running_services
from support.processes import await_ready, kill, processes_below, said, start, stop

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
WORKERS = ("worker-1", "worker-2")
PACE = {
    # What has died is noticed within a minute or two, but a busy machine does not look like death: the API may take
    # longer than the 5 seconds after which a task's process gives up, and Redis than the second of the scheduler.
    "AIRFLOW__CELERY__OPERATION_TIMEOUT": "30",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "120",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
}
"""Settings of time, in seconds, which differ from those of the files."""

CONCURRENCY = 2
"""Tasks that a worker runs at once."""

HOST_NAME = """
import os, socket
socket.gethostname = lambda: os.environ["SMS_TESTS_HOST_NAME"]
"""
"""The host name of the worker, as every Python process there reads it."""


class Worker:
    """A Celery worker with a host name, an AIRFLOW_HOME and a way to PostgreSQL of its own.

    :param folder: where its processes work; its name is the host name.
    :param database: relay to PostgreSQL, which the worker's processes use and no others.
    """

    def __init__(self, folder, database):
        self.name = folder.name
        self.database = database
        self._folder = folder
        self._output = folder / "worker.out"
        self._process = None
        (folder / "site").mkdir(parents=True)
        (folder / "site" / "sitecustomize.py").write_text(HOST_NAME)

    def start(self, environment):
        """Start the worker.

        :param environment: of a process of this Airflow, by its AIRFLOW_HOME and the place of PostgreSQL.
        """
        settings = environment(self._folder, (self.database.host, self.database.port))
        settings["PYTHONPATH"] = f"{self._folder}/site:{settings['PYTHONPATH']}"
        settings["SMS_TESTS_HOST_NAME"] = self.name
        # Left by one that was killed, and then the number of another process.
        (self._folder / "airflow-worker.pid").unlink(missing_ok=True)
        self._output.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "airflow", "celery", "worker", "--skip-serve-logs"),
            *("--concurrency", str(CONCURRENCY), "--celery-hostname", f"celery@{self.name}"),
            *("--without-mingle", "--without-gossip"),
        ]
        self._process = start(command, self._folder, self._output, env=settings)

    def await_ready(self):
        """Return once the worker takes tasks."""

        def is_ready():
            return " ready." in self._output.read_text(errors="replace")

        await_ready(is_ready, [self._process], seconds=READY_SECONDS, what=f"{self.name} takes tasks")

    def tasks(self):
        """Return the living processes of its tasks: the children of those in its pool."""
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self._process.pid)
            return [process for process in main.children(recursive=True) if process.ppid() not in (main.pid, 1)]
        return []

    def kill(self):
        """Kill all its processes, those of its tasks too, as a machine does that loses its power."""
        kill(lambda: processes_below(self._folder))
        if self._process is not None:
            self._process.wait()


class Engine(RestApi):
    """A running Airflow.

    :param folder: for homes, logs and DAGs; every process works below it.
    :param services: the running services.
    """

    def __init__(self, folder, services):
        self.folder = folder
        self.services = services
        self.workers = {}
        self._processes = []
        self._key = base64.urlsafe_b64encode(os.urandom(32)).decode()
        self._middle = folder / "middle"
        self._middle.mkdir()
        (folder / "dags").mkdir()
        super().__init__(f"http://{HOST}:{free_port()}", self._middle)

    def environment(self, home, database):
        """Return the environment of a process.

        :param home: its AIRFLOW_HOME.
        :param database: host and port at which it reaches PostgreSQL.
        """
        host, port = database
        metadata = f"{METADATA}@{host}:{port}/{METADATA}"
        ledger = {"host": host, "port": port, "login": LEDGER, "schema": LEDGER}
        service = {"host": self.services.messaging, "password": TOKEN}
        return {
            **deployed_settings(),
            **environment(home, self.url),
            # A process that is killed removes none of its temporary files: they go with this folder.
            "TMPDIR": str(home),
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps({"conn_type": "sms", **service}),
            "AIRFLOW_CONN_SMS_LEDGER": json.dumps({"conn_type": "postgres", **ledger}),
            "AIRFLOW__API__SECRET_KEY": self._key,
            "AIRFLOW__API_AUTH__JWT_SECRET": self._key,
            "AIRFLOW__CELERY__BROKER_URL": self.services.broker,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{metadata}",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__FERNET_KEY": self._key,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{metadata}",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+psycopg_async://{metadata}",
            **PACE,
        }

    def start(self):
        """Make Airflow's database, and start every component; return once all are ready."""
        init = self._run(init_command(), "init")
        if init.wait(READY_SECONDS):
            raise RuntimeError(f"init: {said(self._middle / 'init.out')}")
        for component in COMPONENTS:
            self._processes.append(self._start(component))
        await_ready(self._is_healthy, self._processes, seconds=READY_SECONDS, what="all components live")

    def revive(self):
        """Start components again that have ended by themselves, as what runs them in production does."""
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                self._processes[number] = self._start(COMPONENTS[number])

    def renew_workers(self):
        """Give every worker new processes, and return once all take tasks."""
        for worker in self.workers.values():
            worker.kill()
            worker.start(self.environment)
        for worker in self.workers.values():
            worker.await_ready()

    def _is_healthy(self):
        with suppress(requests.ConnectionError, requests.HTTPError):
            health = self.health()
            return all(health[name]["status"] == "healthy" for name in ("scheduler", "dag_processor", "triggerer"))
        return False

    def _start(self, component):
        without_logs = ["--skip-serve-logs"] if component in ("scheduler", "triggerer") else []
        return self._run([sys.executable, "-m", "airflow", component, *without_logs], component)

    def _run(self, command, name):
        settings = self.environment(self._middle, self.services.database.address)
        return start(command, self._middle, self._middle / f"{name}.out", env=settings)

    def stop(self):
        """End all processes in order, then kill any that remain."""
        for worker in self.workers.values():
            worker.kill()
        stop(self._processes, signal.SIGTERM, self._middle)
        self.close()


@contextmanager
def running_engine(folder):
    """Run an Airflow with its services, and workers that do not run yet. Leaving the context ends all processes.

    :param folder: an empty one.
    """
    with ExitStack() as running:
        services = running.enter_context(running_services(folder))
        engine = Engine(folder, services)
        for name in WORKERS:
            relay = running.enter_context(Forwarder(services.database.address))
            engine.workers[name] = Worker(folder / name, relay)
        running.callback(engine.stop)
        engine.start()
        yield engine
