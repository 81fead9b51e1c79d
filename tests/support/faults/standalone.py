"""A real ``airflow standalone`` in a home of its own, driven through its REST API; nothing of it outlives the block."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import psutil
import requests

import airflow_provider_sms

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "TMPDIR", "TZ", "USER")
ENDED = ("success", "failed")
READY_SECONDS = 180.0
RUN_SECONDS = 240.0
PATIENCE = 20.0
STOP_SECONDS = 8.0
"""How long what was told to stop may take. The workers of a scheduler that was killed never stop by themselves."""
POLL_SECONDS = 0.1

# Found by "airflow standalone" on the PATH. Its log servers would listen on every address of the machine.
WRAPPER = """#!/bin/sh
case "$1" in
    scheduler|triggerer) exec {python} -m airflow "$@" --skip-serve-logs ;;
    *) exec {python} -m airflow "$@" ;;
esac
"""


def until(condition, *, seconds, what):
    """Wait until something holds, and give it.

    :param condition: asked again and again, until what it gives is true.
    :param what: for the error.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds:.0f} s still waiting until {what}")
        time.sleep(POLL_SECONDS)
    return found


class Standalone:
    """A running Airflow.

    :param home: its AIRFLOW_HOME. Every process of it works in that folder, which is how it is known as one.
    :param settings: more environment variables.
    """

    def __init__(self, home, settings):
        self.home = home = home.resolve()
        self._processes = []
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}"
        self._session = requests.Session()
        self._session.trust_env = False
        self._environment = {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            "HOME": str(home),
            "PATH": f"{_wrapper(home)}:{Path(sys.executable).parent}:{os.defpath}",
            "PYTHONPATH": str(Path(airflow_provider_sms.__file__).parents[1]),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__BASE_URL": self._url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            # A scheduler that was killed is missed within seconds, so that its tasks are taken over while they run.
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "6",
            # And so is a task that hangs.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "12",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
            **settings,
        }

    def start(self):
        """Start it, and wait until the API answers and a scheduler lives."""
        self._run("standalone")
        until(self._scheduler_lives, seconds=READY_SECONDS, what="Airflow's scheduler lives")

    def _run(self, command):
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            # As it is in a shell's background. It would be inherited, and only SIGINT ends all of it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with (self.home / f"{command}-{len(self._processes)}.out").open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    ["airflow", command],
                    executable=str(self.home / "bin" / "airflow"),
                    env=self._environment,
                    cwd=self.home,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C is for this process, which ends the other one in order.
                    start_new_session=True,
                )
            )

    def _scheduler_lives(self):
        for process in self._processes:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[1]} ended with status {process.returncode}")
        with suppress(requests.ConnectionError, requests.Timeout):
            return self.call("GET", "/api/v2/monitor/health")["scheduler"]["status"] == "healthy"
        return False

    # Processes

    def processes(self):
        """Give every living process of this Airflow, whoever its parent is by now."""
        return [process for process in psutil.process_iter() if self.owns(process)]

    def owns(self, process):
        """Whether a process is one of this Airflow and lives."""
        try:
            # Not by its environment: Airflow writes titles over it.
            return process.cwd() == str(self.home) and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def kill(self, pid):
        """Kill a process of this Airflow, and return when it is gone."""
        process = psutil.Process(pid)
        if not self.owns(process):
            raise RuntimeError("not a process of this Airflow")
        process.kill()
        until(lambda: not self.owns(process), seconds=PATIENCE, what="the killed process is gone")

    @contextmanager
    def frozen(self, pid):
        """Let a task's process and the one that watches over it hang for the block."""
        process = psutil.Process(pid)
        both = [process.parent(), process]
        if not all(map(self.owns, both)):
            raise RuntimeError("not processes of this Airflow")
        for each in both:
            each.suspend()
        yield
        for each in both:
            each.resume()

    def kill_scheduler(self):
        """Kill the scheduler alone: what it has started goes on."""
        (scheduler,) = (
            process
            for process in self.processes()
            if "scheduler" in process.cmdline() and not (process.parent() and "scheduler" in process.parent().cmdline())
        )
        self.kill(scheduler.pid)

    def start_scheduler(self):
        """Start another scheduler."""
        self._run("scheduler")

    def stop(self):
        """Stop everything in order, then kill what is left."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        while left := self.processes():
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, timeout=POLL_SECONDS)
        for process in self._processes:
            process.wait()
        self._session.close()

    # REST API

    def call(self, method, path, **body):
        """Make a request of the API, and give its answer."""
        if "Authorization" not in self._session.headers:
            token = self._session.get(f"{self._url}/auth/token", timeout=PATIENCE)
            token.raise_for_status()
            self._session.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        answer = self._session.request(method, self._url + path, json=body or None, timeout=PATIENCE)
        answer.raise_for_status()
        return answer.json()

    def has(self, dag_id):
        """Whether the DAG has been read."""
        with suppress(requests.HTTPError):
            return self.call("GET", f"/api/v2/dags/{dag_id}")["dag_id"] == dag_id
        return False

    def trigger(self, dag_id, run_id, **conf):
        """Begin a run.

        :param conf: the DAG's params.
        """
        until(lambda: self.has(dag_id), seconds=READY_SECONDS, what=f"{dag_id} has been read")
        self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", dag_run_id=run_id, logical_date=None, conf=conf)

    def await_end(self, dag_id, run_id):
        """Wait until a run has ended, and give its state."""

        def ended():
            # The API of a machine that is busy with tasks may be slow to answer.
            with suppress(requests.Timeout):
                state = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"]
                return state if state in ENDED else None
            return None

        return until(ended, seconds=RUN_SECONDS, what=f"the run of {dag_id} has ended")

    def instances(self, dag_id, run_id):
        """Give the task instances of a run."""
        return self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]

    def clear(self, dag_id, run_id):
        """Clear every task of a run, whatever its state."""
        self.call(
            "POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", dag_run_id=run_id, dry_run=False, only_failed=False
        )

    def mark(self, dag_id, run_id, task_id, state):
        """Give a task another state, as a person does in the web page."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self.call("PATCH", path, new_state=state)

    def answer(self, dag_id, run_id, task_id, option):
        """Answer what a task asks, as a person does in the required actions; it may be answered already."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        try:
            self.call("PATCH", path, chosen_options=[option], params_input={})
        except requests.HTTPError as error:
            if error.response.status_code != HTTPStatus.CONFLICT:
                raise

    def summaries(self, dag_id, run_id):
        """Give what the last try of each task instance of a run has pushed as its result, with its map index."""
        for instance in self.instances(dag_id, run_id):
            task_id, map_index = instance["task_id"], instance["map_index"]
            entry = f"{task_id}/xcomEntries/return_value?map_index={map_index}&stringify=false"
            path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{entry}"
            yield map_index, self.call("GET", path)["value"]


@contextmanager
def running_airflow(home, settings):
    """Run an Airflow; on leaving, all of it has ended.

    :param home: a folder of its own, with the DAGs in its ``dags``.
    :param settings: more environment variables.
    """
    airflow = Standalone(home, settings)
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def _wrapper(home):
    folder = home / "bin"
    folder.mkdir(parents=True)
    wrapper = folder / "airflow"
    wrapper.write_text(WRAPPER.format(python=sys.executable))
    wrapper.chmod(0o700)
    return folder


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
