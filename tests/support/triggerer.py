"""Sensors that wait in a real triggerer, and what may befall it: ``python -m support.triggerer``."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.faults.airflow import TOKEN, leaks
from support.faults.standalone import RUN_SECONDS, running_airflow, until

SENSORS = 100
TIMEOUT = 40.0
"""Seconds: long enough for the triggerer to be killed and to be missed meanwhile."""
SLACK = 10.0
"""Seconds that a busy machine may take to notice the end of a wait."""
ANSWER = 5.0
"""Seconds that the service takes while many wait for it."""
WINDOW = 20.0
CROWD_SECONDS = 900.0

DAGS = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.sensors.balance import BalanceSensor

with DAG("killed", schedule=None):
    waiting = {{"deferrable": True, "poke_interval": 1}}
    BalanceSensor(task_id="credit", min_balance=500, timeout=600, **waiting)
    BalanceSensor(task_id="expired", min_balance=90_000, timeout={timeout}, soft_fail=True, **waiting)

with DAG("many", schedule=None, max_active_tasks=1000):
    BalanceSensor.partial(task_id="credit", timeout=3600, max_failures=5, **waiting).expand(
        min_balance=[500 + number for number in range({sensors})]
    )
"""

SETTINGS = {
    # A machine that is busy with a hundred tasks is slow to answer; that is not what is played here.
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "300",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    # A triggerer that was killed is missed within seconds.
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
    "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "1",
    # So that what a trigger is stored with can be read.
    "AIRFLOW__CORE__FERNET_KEY": "",
    # One page of the API for the whole crowd.
    "AIRFLOW__API__MAXIMUM_PAGE_LIMIT": "1000",
    "AIRFLOW__API__FALLBACK_PAGE_LIMIT": "1000",
}


class Play:
    """Scenarios in one Airflow.

    :param service: the sandbox's memory.
    """

    def __init__(self, airflow, service):
        self._airflow = airflow
        self._service = service

    def killed(self):
        """Kill the triggerer while sensors wait, start another, and give credit; give what was seen and is wrong."""
        self._service.set_balance(10)
        self._airflow.trigger("killed", "run")
        self._all_deferred("killed", 2)
        began = time.monotonic()
        stored = self._stored()
        old = {process.pid for process in self._airflow.triggerer()}
        self._airflow.kill_triggerer()
        looks = self._looks()
        # Half of the timeout goes by: it would be missed if the other triggerer began to count anew.
        time.sleep(TIMEOUT / 2)
        unseen = self._looks() - looks
        self._airflow.start_triggerer()
        looks += unseen
        until(lambda: self._looks() > looks, seconds=RUN_SECONDS, what="the other triggerer looks")
        found = time.monotonic() - began
        until(lambda: self._states("killed")["expired"] != "deferred", seconds=RUN_SECONDS, what="the timeout is seen")
        expired = time.monotonic() - began
        still = self._states("killed")["credit"]
        self._service.set_balance(700)
        self._airflow.await_end("killed", "run")
        states, results = self._states("killed"), [value for _, value in self._results("killed", "credit")]
        new = {process.pid for process in self._airflow.triggerer()}
        wrong = []
        if states != {"credit": "success", "expired": "skipped"} or still != "deferred":
            wrong.append(f"the tasks ended as {states}, and the first was {still} before there was credit")
        if results != [{"balance": 700.0, "post_paid": False}]:
            wrong.append(f"the sensor gave {results}")
        if unseen or old & new:
            wrong.append("the triggerer that was killed lived on")
        if not expired <= TIMEOUT + SLACK:
            wrong.append(f"the timeout of {TIMEOUT:.0f} s was seen after {expired:.0f} s")
        if len(stored) != 2 or any(TOKEN in text for text in stored):
            wrong.append(f"{len(stored)} triggers are stored, or one with the token")
        said = f"looked again after {found:.0f} s; timeout of {TIMEOUT:.0f} s seen after {expired:.0f} s; {states}"
        return said, wrong

    def many(self, sensors):
        """Let many wait for a slow service at once, then give credit; give what was seen and is wrong."""
        self._service.set_balance(10)
        self._airflow.trigger("many", "run")
        self._all_deferred("many", sensors)
        stored = self._stored()
        self._service.set_faults([{"kind": "delay", "seconds": ANSWER, "on": "balance", "persistent": True}])
        looks, threads, end = self._looks(), 0, time.monotonic() + WINDOW
        while time.monotonic() < end:
            threads = max(threads, self._airflow.triggerer()[-1].num_threads())
            time.sleep(0.5)
        looks = self._looks() - looks
        self._service.set_balance(700)
        began = time.monotonic()
        until(lambda: "deferred" not in self._counts("many"), seconds=CROWD_SECONDS, what="every sensor has fired")
        fired = time.monotonic() - began
        until(lambda: set(self._counts("many")) == {"success"}, seconds=CROWD_SECONDS, what="every sensor has ended")
        ended = time.monotonic() - began
        wrong = []
        if looks > WINDOW / ANSWER + 1:
            wrong.append(f"{looks} requests in {WINDOW:.0f} s of a service that takes {ANSWER:.0f} s for each")
        if len(stored) != sensors or any(TOKEN in text for text in stored):
            wrong.append(f"{len(stored)} triggers are stored, or one with the token")
        said = (
            f"{looks} requests in {WINDOW:.0f} s, at most {threads} threads; with credit all had fired after "
            f"{fired:.0f} s and ended after {ended:.0f} s"
        )
        return said, wrong

    def _looks(self):
        return sum(request.operation == "balance" for request in self._service.requests)

    def _counts(self, dag_id):
        return [instance["state"] for instance in self._airflow.instances(dag_id, "run")]

    def _states(self, dag_id):
        return {instance["task_id"]: instance["state"] for instance in self._airflow.instances(dag_id, "run")}

    def _results(self, dag_id, task_id):
        path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/{task_id}/xcomEntries/return_value?stringify=false"
        yield task_id, self._airflow.call("GET", path)["value"]

    def _all_deferred(self, dag_id, number):
        def deferred():
            return self._counts(dag_id).count("deferred") == number and self._stored()

        until(deferred, seconds=CROWD_SECONDS, what=f"{number} sensors are deferred")

    def _stored(self):
        with closing(sqlite3.connect(f"file:{self._airflow.home}/airflow.db?mode=ro", uri=True)) as database:
            return [str(row) for row in database.execute("SELECT * FROM trigger")]


def play(sensors):
    """Play both scenarios in a fresh Airflow; yield the name of each, what was seen, and what is wrong."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-triggerer-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        service = stack.enter_context(running_sandbox(SandboxConfig(token=TOKEN, balance=10)))
        connection = {"conn_type": "sms", "host": service.base_url, "password": TOKEN}
        home = folder / "airflow"
        (home / "dags").mkdir(parents=True)
        (home / "dags" / "waiting.py").write_text(DAGS.format(timeout=TIMEOUT, sensors=sensors))
        settings = {**SETTINGS, "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(connection)}
        with running_airflow(home, settings) as airflow:
            scenarios = Play(airflow, service.state)
            yield "triggerer killed, another started", *scenarios.killed()
            yield f"{sensors} sensors at once", *scenarios.many(sensors)
        leaking = leaks(home, set())
        yield "logs", f"{len(leaking)} hold the token", [f"{path} holds the token" for path in leaking]


def main(arguments=None):
    """Play, and print a table; 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m support.triggerer", description=__doc__)
    parser.add_argument("--sensors", type=int, default=SENSORS, help=f"of the crowd (default: {SENSORS})")
    given = parser.parse_args(arguments)
    # A process that is told to end still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console, table, wrong = Console(), Table("scenario", "seen"), []
    for name, said, problems in play(given.sensors):
        console.print(f"{name}: ended", style="dim")
        table.add_row(name, said)
        wrong.extend(f"{name}: {words}" for words in problems)
    console.print(table)
    for words in wrong:
        console.print(words)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was started has ended")
