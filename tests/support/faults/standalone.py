"""A real ``airflow standalone`` with its own home and REST API; none of its processes outlives the block."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import requests

import airflow_provider_sms
from support.faults.rest import PATIENCE, READY_SECONDS, RestApi, until
from support.leftovers import MARK
from support.processes import await_ready, processes_below, said, start, stop
from support.versions import HAS_COMMANDS_OF_PROVIDERS

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", MARK, "TMPDIR", "TZ", "USER")

PROMPT = {
    # A killed scheduler is detected within seconds, so that its tasks are taken over while they run.
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "6",
    # And so is a task that hangs.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "12",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
}
"""Settings of an Airflow whose scheduler is killed, or whose tasks hang."""

# Found by "airflow standalone" on the PATH. Its log servers would listen on every address of the machine.
WRAPPER = """#!/bin/sh
case "$1" in
    scheduler|triggerer) exec {airflow} "$@" --skip-serve-logs ;;
    *) exec {airflow} "$@" ;;
esac
"""


class Standalone(RestApi):
    """A running Airflow.

    :param home: the Airflow's AIRFLOW_HOME. Every process of it works in that folder, which is how it is known as one.
    :param settings: more environment variables.
    """

    def __init__(self, home, settings):
        home = home.resolve()
        super().__init__(f"http://127.0.0.1:{free_port()}", home)
        programs = wrapper(home / "bin", f"{sys.executable} -m airflow")
        self._processes = []
        self._environment = {
            **environment(home, self.url, programs),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            # On a busy machine the database is locked for longer than the 5 seconds after which a component gives up.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # no file changes
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            # A busy machine must not look like a dead scheduler, or like a task that hangs.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "300",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "300",
            **settings,
        }

    def start(self):
        """Start Airflow, and wait until the API responds and a scheduler is alive."""
        self._run("standalone")
        await_ready(self._scheduler_lives, self._processes, seconds=READY_SECONDS, what="Airflow's scheduler lives")

    def await_end(self, dag_id, run_id):
        """Wait until a run has ended, and return its state; one that does not end tells all that is known of it."""
        try:
            return super().await_end(dag_id, run_id)
        except TimeoutError as error:
            health = {part: each["status"] for part, each in self.health().items()}
            tasks = {each["task_id"]: each["state"] for each in self.instances(dag_id, run_id)}
            last = said(self.home / "standalone-0.out")
            raise TimeoutError(f"{error}; health {health}, tasks {tasks}; said last:\n{last}") from None

    def _run(self, command, settings=None):
        output, program = self.home / f"{command}-{len(self._processes)}.out", self.home / "bin" / "airflow"
        environment = {**self._environment, **(settings or {})}
        self._processes.append(start(["airflow", command], self.home, output, executable=str(program), env=environment))

    def _scheduler_lives(self):
        with suppress(requests.ConnectionError):
            return self.health()["scheduler"]["status"] == "healthy"
        return False

    def ledger_command(self, *arguments):
        """Return what a ledger command prints in a separate process, like that of a person on this machine.

        It is a command of Airflow, or the console script where Airflow has no commands of providers.
        """
        script = "from airflow_provider_sms.cli.main import main; main()"
        ours = ["-m", "airflow", "sms"] if HAS_COMMANDS_OF_PROVIDERS else ["-c", script]
        printed = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = [sys.executable, *ours, *arguments]
        return subprocess.run(command, env=self._environment, cwd=self.home, check=False, **printed).stdout

    # Processes

    def processes(self):
        """Return every living process of this Airflow, whatever its parent."""
        return processes_below(self.home)

    def kill(self, *processes):
        """Kill processes of this Airflow at once, like a power failure, and return once they are gone."""
        for process in processes:
            with suppress(psutil.Error):
                process.kill()
        until(lambda: not {*self.processes()} & {*processes}, seconds=PATIENCE, what="what was killed is gone")

    @contextmanager
    def frozen(self, process):
        """Suspend a task's process and its supervisor during the block."""
        both = [process.parent(), process]
        for each in both:
            each.suspend()
        yield
        for each in both:
            each.resume()

    def replace(self, command, settings=None, *, whole):
        """Kill a component, and start another one in its place.

        :param settings: more environment variables of the other one.
        :param whole: whether its children die with it; the tasks of a scheduler may go on.
        """
        (first,) = (process for process in self.processes() if _begins(process, command))
        self.kill(first, *(first.children(recursive=True) if whole else ()))
        self._run(command, settings)

    def stop(self):
        """Stop all processes in order, then kill any that remain."""
        stop(self._processes, signal.SIGINT, self.home)
        self.close()


@contextmanager
def running_airflow(home, settings):
    """Run an Airflow. Leaving the context ends all of its processes.

    :param home: a new folder, with the DAGs in ``dags``.
    :param settings: more environment variables.
    """
    airflow = Standalone(home, settings)
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def _begins(process, command):
    """Return whether a process runs a command that its parent does not run; one that has ended meanwhile runs none."""
    try:
        parent = process.parent()
        return command in process.cmdline() and not (parent and command in parent.cmdline())
    except psutil.Error:
        return False


def environment(home, url, *programs):
    """Return the environment of a process of an Airflow, whose web server listens on this machine alone.

    :param home: its AIRFLOW_HOME.
    :param url: of the web server.
    :param programs: folders that come first on the PATH.
    """
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "HOME": str(home),
        "PATH": os.pathsep.join(map(str, [*programs, Path(sys.executable).parent, os.defpath])),
        "PYTHONPATH": str(Path(airflow_provider_sms.__file__).parents[1]),
        "PYTHONUNBUFFERED": "1",  # what is logged is waited for
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        # On a busy machine the API takes longer than the 5 seconds after which a task's process gives up.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }


def wrapper(folder, airflow):
    """Write the program ``airflow`` into a new folder, which belongs on the PATH, and return the folder.

    :param airflow: command that it runs.
    """
    folder.mkdir(parents=True)
    program = folder / "airflow"
    program.write_text(WRAPPER.format(airflow=airflow))
    program.chmod(0o700)
    return folder


def free_port():
    """Return a port that is free, below those that the system gives to anybody who asks before Airflow listens."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(15_000, 30_000))) as listener:
            return listener.getsockname()[1]
