from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing

import psutil
import pytest
from airflow.providers.common.compat.sdk import DAG, TaskDeferred
from support.airflow import register
from support.faults.rest import until

from airflow_provider_sms.sensors.balance import BalanceSensor

TOKEN = "sandbox-token-0123"
SENSORS = 100
PATIENCE = 600.0
"""Seconds after which something that never happens fails the test."""
SETTINGS = {
    # A triggerer that was killed is missed within seconds.
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
}


@pytest.fixture
def database(tmp_path):
    """The file of the triggerers' own database: they are killed, and the tests after this one need theirs."""
    return tmp_path / "airflow.db"


@pytest.fixture
def triggerer(airflow_home, database, sms_default, tmp_path):
    """Start real triggerers, each in processes of its own; none outlives the test."""
    started = []

    def start():
        environment = {**os.environ, **SETTINGS, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database}"}
        with (tmp_path / f"triggerer-{len(started)}.out").open("wb") as output:
            command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
            started.append(psutil.Popen(command, env=environment, stdout=output, stderr=output))
        return started[-1]

    yield start
    for process in started:
        kill(process)


def kill(process):
    """Kill a triggerer: the process that watches, and the one in which triggers run."""
    if process.is_running():
        family = [process, *process.children(recursive=True)]
        for each in family:
            each.kill()
        psutil.wait_procs(family)
    process.wait()


def defer(sensors):
    """Let sensors take their own look and defer, and return what Airflow stores of their triggers."""
    import pendulum
    from airflow.models.dagbag import DBDagBag
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    kept = []
    dag = sensors[0].dag
    register(dag)
    with create_session() as session:
        now = pendulum.now("UTC")
        run = (
            DBDagBag()
            .get_latest_version_of_dag(dag.dag_id, session=session)
            .create_dagrun(
                run_id="run",
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                run_type=DagRunType.MANUAL,
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.RUNNING,
                session=session,
            )
        )
        instances = {instance.task_id: instance for instance in run.get_task_instances(session=session)}
        for sensor in sensors:
            with pytest.raises(TaskDeferred) as caught:
                sensor.execute({})
            stored = Trigger.from_object(caught.value.trigger)
            session.add(stored)
            session.flush()
            instance = instances[sensor.task_id]
            instance.state, instance.trigger_id = TaskInstanceState.DEFERRED, stored.id
            instance.next_method, instance.next_kwargs = caught.value.method_name, {}
            kept.append(f"{stored.classpath}{stored.kwargs}{stored.encrypted_kwargs}")
    return kept


def copy(source, target):
    """Copy a database that may be in use."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def outcomes(database):
    """Return the state and the event of each sensor."""
    query = "SELECT task_id, state, next_kwargs FROM task_instance WHERE dag_id = 'triggerer'"
    with closing(sqlite3.connect(database, timeout=60.0)) as connection:
        return {task_id: (state, kwargs) for task_id, state, kwargs in connection.execute(query)}


def test_many_sensors_outlive_their_triggerer(triggerer, database, sandbox, airflow_home, tmp_path):
    """A hundred that wait in a triggerer that is killed are served by the next one; none is lost, no token is kept."""
    sandbox.state.set_balance(10)
    waiting = {"deferrable": True, "poke_interval": 1}
    with DAG("triggerer", schedule=None):
        crowd = [
            BalanceSensor(task_id=f"credit_{number}", min_balance=500 + number, timeout=86_400, **waiting)
            for number in range(SENSORS)
        ]
        expired = BalanceSensor(task_id="expired", min_balance=90_000, timeout=1, **waiting)
    kept = defer([*crowd, expired])
    copy(airflow_home / "airflow.db", database)

    def looks():
        return len(sandbox.state.requests)

    def next_look(running):
        before = looks()

        def has_looked():
            assert running.poll() is None, "the triggerer has ended"
            return looks() > before

        until(has_looked, seconds=PATIENCE, what="a triggerer looks")

    first = triggerer()
    next_look(first)
    kill(first)
    next_look(triggerer())
    sandbox.state.set_balance(700)
    until(
        lambda: all(state != "deferred" for state, _ in outcomes(database).values()),
        seconds=PATIENCE,
        what="every sensor has fired",
    )
    events = outcomes(database)
    assert ("timeout" in events.pop("expired")[1], len(events)) == (True, SENSORS)
    assert {(state, '"success"' in kwargs) for state, kwargs in events.values()} == {("scheduled", True)}
    assert (len(kept), any(TOKEN in row for row in kept)) == (SENSORS + 1, False)
    logs = [*tmp_path.glob("*.out"), *(path for path in (airflow_home / "logs").rglob("*") if path.is_file())]
    assert [path for path in logs if TOKEN.encode() in path.read_bytes()] == []
