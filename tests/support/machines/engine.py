"""Airflow with the CeleryExecutor on several machines of one computer; none of its processes outlives the block.

How to use it::

    with running_engine("relays", folder, workers=2) as engine:
        engine.add_dags("campaigns.py", text)                # a file in the DAGs folder that all share
        engine.trigger("a_dag", "a_run")                     # and all else of support.faults.rest.RestApi
        worker = engine.workers["worker-1"]
        worker.machine.cut("database", "broker")             # silence; no name means all five services
        worker.machine.mend()
        worker.kill()                                        # SIGKILL, with all processes of its tasks
        worker.stop()                                        # a warm shutdown: returns once its tasks have ended
        worker.start(AIRFLOW__SMS__LEDGER_PATH="…")          # again, with more environment variables for this start
        engine.kill("scheduler")
        engine.start("scheduler")
        engine.services.broker.kill()                        # and database, standby, messaging: see services.py
        engine.services.fail_over()
        engine.restore()                                     # for what comes next: whole links, new workers, no faults

The services are named ``database``, ``pooler``, ``broker``, ``api`` and ``messaging``. A worker with another
clock is one that is started with another environment.

Scheduler, DAG processor, triggerer, API server and services are in the middle, which has no link that could be cut.
A worker has an AIRFLOW_HOME, a host name and logs of its own; it shares the DAGs folder and the tables with all others,
and with the middle the database.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import requests
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

import airflow_provider_sms
from support.faults.rest import POLL_SECONDS, READY_SECONDS, RUN_SECONDS, RestApi, until
from support.faults.standalone import INHERITED
from support.machines import deployed, packages
from support.machines.network import Namespaces, Relays
from support.machines.services import TOKEN, running_services

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
CONCURRENCY = 2
"""Tasks that a worker runs at once, where an engine is not told otherwise."""
STOP_SECONDS = 8.0
DEATH_SECONDS = 30
"""Seconds without a heartbeat after which Airflow takes a task for dead; its default is 300."""
STUCK_SECONDS = 60
"""Seconds after which a task that no worker has begun is queued again; its default is 600."""

KINDS = {"relays": Relays, "namespaces": Namespaces}


class Worker:
    """A Celery worker on a machine of its own."""

    def __init__(self, engine, machine):
        self.name = machine.name
        self.machine = machine
        self._engine = engine
        self._process = None
        self._starts = 0

    @property
    def output(self):
        """File of what the worker has printed since its last start."""
        return self.machine.folder / f"worker-{self._starts}.out"

    def start(self, **settings):
        """Start the worker, and return once it takes tasks.

        :param settings: more environment variables.
        """
        self._starts += 1
        environment = {**self._engine.environment(self.machine.folder, self.machine.place), **settings}
        arguments = [
            *(sys.executable, "-m", "airflow", "celery", "worker", "--skip-serve-logs"),
            *("--concurrency", str(self._engine.concurrency), "--celery-hostname", f"celery@{self.name}"),
            *("--without-mingle", "--without-gossip"),
        ]
        # Left by one that was killed, and then the number of another process.
        (self.machine.folder / "airflow-worker.pid").unlink(missing_ok=True)
        self._process = self.machine.run(arguments, environment, self.output)

    def await_ready(self):
        """Return once the worker takes tasks."""
        until(self._is_ready, seconds=READY_SECONDS, what=f"{self.name} takes tasks")

    def _is_ready(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with status {self._process.returncode}: {self._end_of_output()}")
        return b" ready." in self.output.read_bytes()

    def _end_of_output(self):
        return self.output.read_text(errors="replace")[-2000:]

    def processes(self):
        """Return all its living processes, those of tasks too."""
        return _processes_in(self.machine.folder)

    def tasks(self):
        """Return the living processes of its tasks: the children of those in its pool."""
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self._process.pid)
            return [process for process in main.children(recursive=True) if process.ppid() not in (main.pid, 1)]
        return []

    def kill(self):
        """Kill all its processes, those of its tasks too, as a machine does that loses its power."""
        _kill_all(self.machine.folder)
        if self._process is not None:
            self._process.wait()

    def stop(self, seconds=RUN_SECONDS):
        """Do a warm shutdown, and return once the worker has ended.

        :param seconds: after which it counts as stuck.
        """
        self._process.terminate()
        self._process.wait(seconds)


class Engine(RestApi):
    """A running Airflow.

    :param folder: for homes, logs and DAGs; every process works in it.
    :param network: the links.
    :param services: the running services.
    :param settings: more environment variables of all its processes.
    :param concurrency: tasks that a worker runs at once.
    """

    def __init__(self, folder, network, services, settings, concurrency=CONCURRENCY):
        self.folder = folder
        self.network = network
        self.services = services
        self.concurrency = concurrency
        self.workers = {}
        self._settings = settings
        self._processes = []
        self._starts = itertools.count()
        self._clocks = packages.shared_clocks()
        self._key = base64.urlsafe_b64encode(os.urandom(32)).decode()
        self._middle = folder / "middle"
        self._middle.mkdir()
        (folder / "dags").mkdir()
        host, port = network.place("api")
        super().__init__(f"http://{host}:{port}", self._middle)

    def environment(self, home, place):
        """Return the environment of a process.

        :param home: its AIRFLOW_HOME.
        :param place: function that gives host and port at which it reaches a service.
        """
        (database, broker, api, messaging) = map(place, ("database", "broker", "api", "messaging"))
        ledger = place("pooler") if self.services.pooler else database
        metadata = f"{deployed.METADATA_ROLE}@{database[0]}:{database[1]}/{deployed.METADATA}"
        service = {
            "conn_type": "sms",
            # The sandbox answers to names of this machine only, so that each machine has given it this one.
            "host": f"http://{'localhost' if self.network.kind == 'namespaces' else messaging[0]}:{messaging[1]}/v1",
            "password": TOKEN,
        }
        kept = {
            "conn_type": "postgres",
            "host": ledger[0],
            "port": ledger[1],
            "login": deployed.LEDGER,
            "schema": deployed.LEDGER,
        }
        return {
            **deployed.settings(),
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            "HOME": str(home),
            # A process that is killed removes none of its temporary files: they go with this folder.
            "TMPDIR": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "PYTHONPATH": str(Path(airflow_provider_sms.__file__).parents[1]),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(service),
            "AIRFLOW_CONN_SMS_LEDGER": json.dumps(kept),
            "AIRFLOW__SMS__LEDGER_PATIENCE": "75",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": self.network.place("api")[0],
            "AIRFLOW__API__PORT": str(self.network.place("api")[1]),
            "AIRFLOW__API__SECRET_KEY": self._key,
            "AIRFLOW__API_AUTH__JWT_SECRET": self._key,
            "AIRFLOW__CELERY__BROKER_URL": f"redis://{broker[0]}:{broker[1]}/0",
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{metadata}",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{api[0]}:{api[1]}/execution/",
            "AIRFLOW__CORE__FERNET_KEY": self._key,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{metadata}",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": f"postgresql+psycopg_async://{metadata}",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(DEATH_SECONDS),
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": str(STUCK_SECONDS),
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
            **self._settings,
        }

    def add_dags(self, name, text):
        """Write a file of DAGs."""
        (self.folder / "dags" / name).write_text(text)

    # The middle

    def start_all(self, workers):
        """Make Airflow's database, and start every component and some workers; return once all are ready."""
        init = self._run_command(deployed.init_command(), "init")
        if init.wait(READY_SECONDS):
            raise RuntimeError(f"init: {(self._middle / '0-init.out').read_text(errors='replace')[-2000:]}")
        for component in COMPONENTS:
            self.start(component)
        for number in range(1, workers + 1):
            machine = self.network.machine(f"worker-{number}", self.folder / f"worker-{number}")
            self.workers[machine.name] = Worker(self, machine)
            self.workers[machine.name].start()
        until(self._is_healthy, seconds=READY_SECONDS, what="all components live")
        for worker in self.workers.values():
            worker.await_ready()

    def start(self, component):
        """Start a component."""
        self._run(component, *(["--skip-serve-logs"] if component in ("scheduler", "triggerer") else []))

    def ask_metadata(self, statement):
        """Return the one value that a statement reads from Airflow's database."""
        metadata = create_engine(self.services.ledger.url.set(database=deployed.METADATA), poolclass=NullPool)
        with metadata.connect() as connection:
            return connection.exec_driver_sql(statement).scalar()

    def kill(self, component):
        """Kill all processes of a component that was started as such; what the workers run continues."""
        found = self._running(component)
        if not found:
            raise RuntimeError(f"no {component} runs")
        first = psutil.Process(found[0].pid)
        for process in [first, *first.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        found[0].wait()
        self._processes.remove(found[0])

    def revive(self):
        """Start components again that have ended by themselves, as what runs them in production does."""
        ended = [each for each in self._processes[1:] if each.poll() is not None]
        for process in ended:
            self._processes.remove(process)
            self.start(next(each for each in COMPONENTS if each in process.args))

    def _running(self, component):
        return [each for each in self._processes if component in each.args and each.poll() is None]

    def _run(self, *arguments):
        return self._run_command([sys.executable, "-m", "airflow", *arguments], arguments[0])

    def _run_command(self, command, name):
        with (self._middle / f"{next(self._starts)}-{name}.out").open("wb") as output:
            process = subprocess.Popen(
                command,
                env=self.environment(self._middle, self.network.place),
                cwd=self._middle,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the tests' process only, which ends the others in order.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _is_healthy(self):
        for process in self._processes[1:]:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[3]} ended with status {process.returncode}")
        with suppress(requests.ConnectionError, requests.HTTPError):
            health = self.health()
            return all(health[name]["status"] == "healthy" for name in ("scheduler", "dag_processor", "triggerer"))
        return False

    def restore(self, of_worker=None, /, **settings):
        """Mend all links, empty the broker, start new workers, and let each component run.

        :param of_worker: more environment variables of single workers, by name.
        :param settings: more environment variables of the new workers.
        """
        self.services.messaging.state.set_faults([])
        for worker in self.workers.values():
            worker.kill()
        self.services.broker.empty()
        for worker in self.workers.values():
            worker.start(**{**settings, **(of_worker or {}).get(worker.name, {})})
        self.revive()
        for component in COMPONENTS:
            if not self._running(component):
                self.start(component)
        until(self._is_healthy, seconds=READY_SECONDS, what="all components live")
        for worker in self.workers.values():
            worker.await_ready()

    def stop(self):
        """End all processes in order, then kill any that remain."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            worker.kill()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        _kill_all(self._middle)
        for process in self._processes:
            process.wait()
        for file in packages.shared_clocks() - self._clocks:
            file.unlink(missing_ok=True)
        self.close()


@contextmanager
def running_engine(kind, folder, *, workers=3, settings=None, concurrency=CONCURRENCY, **services):
    """Run an Airflow with its services. Leaving the context ends all processes and links.

    :param kind: ``relays`` or ``namespaces``.
    :param folder: an empty one, into which any user may look.
    :param workers: number of workers.
    :param settings: more environment variables of all Airflow's processes.
    :param concurrency: tasks that a worker runs at once.
    :param services: arguments of :func:`~support.machines.services.running_services`.
    """
    with ExitStack() as running:
        network = running.enter_context(KINDS[kind]())
        given = running.enter_context(running_services(network, folder, **services))
        engine = Engine(folder, network, given, settings or {}, concurrency)
        running.callback(engine.stop)
        engine.start_all(workers)
        yield engine


def _processes_in(folder):
    """Return the living processes that work in a folder, by which those of a machine are known."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            # Not by its environment: Airflow writes titles over it.
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _kill_all(folder):
    """Kill all processes that work in a folder, and those that they start meanwhile."""
    while left := _processes_in(folder):
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=POLL_SECONDS)
