from __future__ import annotations

import json
import os
import sys

import psutil
import pytest
from airflow.providers.common.compat.sdk import DAG, TaskDeferred
from support.airflow import register
from support.faults.rest import until
from support.versions import MAKES_RUNS_OF_STORED_DAGS

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
def triggerer(airflow_home, sms_default, tmp_path):
    """Start real triggerers, each in processes of its own; none outlives the test."""
    started = []

    def start():
        with (tmp_path / f"triggerer-{len(started)}.out").open("wb") as output:
            command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
            started.append(psutil.Popen(command, env={**os.environ, **SETTINGS}, stdout=output, stderr=output))
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
    """Let sensors take their own look and defer, and give the state and the event of each, to be asked later."""
    import pendulum
    from airflow.models.dagbag import DBDagBag
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType
    from sqlalchemy import select

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

    def outcomes():
        with create_session() as session:
            found = session.scalars(select(TaskInstance).filter_by(dag_id=dag.dag_id)).all()
            return {each.task_id: (str(each.state), json.dumps(each.next_kwargs)) for each in found}

    def stored():
        with create_session() as session:
            ours = select(TaskInstance.trigger_id).where(TaskInstance.dag_id == dag.dag_id)
            rows = session.scalars(select(Trigger).where(Trigger.id.in_(ours))).all()
            return [f"{row.classpath}{row.kwargs}{row.encrypted_kwargs}" for row in rows]

    return outcomes, stored


@pytest.mark.skipif(not MAKES_RUNS_OF_STORED_DAGS, reason="a whole Airflow is needed; test_whole.py has one")
def test_many_sensors_outlive_their_triggerer(triggerer, sandbox, airflow_home, tmp_path):
    """A hundred that wait in a triggerer that is killed are served by the next one; none is lost, no token is kept."""
    sandbox.state.set_balance(10)
    waiting = {"deferrable": True, "poke_interval": 1}
    with DAG("triggerer", schedule=None):
        crowd = [
            BalanceSensor(task_id=f"credit_{number}", min_balance=500 + number, timeout=86_400, **waiting)
            for number in range(SENSORS)
        ]
        expired = BalanceSensor(task_id="expired", min_balance=90_000, timeout=1, **waiting)
    outcomes, stored = defer([*crowd, expired])
    kept = stored()

    def looks():
        return len(sandbox.state.requests)

    def next_look():
        before = looks()
        until(lambda: looks() > before, seconds=PATIENCE, what="a triggerer looks")

    first = triggerer()
    next_look()
    kill(first)
    unseen = looks()
    triggerer()
    next_look()
    sandbox.state.set_balance(700)
    until(
        lambda: all(state != "deferred" for state, _ in outcomes().values()),
        seconds=PATIENCE,
        what="every sensor has fired",
    )
    events = outcomes()
    assert ("timeout" in events.pop("expired")[1], len(events)) == (True, SENSORS)
    assert {(state, '"success"' in kwargs) for state, kwargs in events.values()} == {("scheduled", True)}
    # One look serves all who wait for it; that all fall into one depends on the machine.
    assert looks() - unseen < SENSORS
    assert (len(kept), any(TOKEN in row for row in kept)) == (SENSORS + 1, False)
    logs = [*tmp_path.glob("*.out"), *(path for path in (airflow_home / "logs").rglob("*") if path.is_file())]
    assert [path for path in logs if TOKEN.encode() in path.read_bytes()] == []
