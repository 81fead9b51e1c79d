from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.faults.rest import RUN_SECONDS, until
from support.faults.standalone import running_airflow

from airflow_provider_sms.reporting.summary import COUNTS

TOKEN = "sandbox-token-0123"
PEOPLE = 1500
FIRST = {"marked": 27_820_000_000, "cleared": 27_830_000_000}
"""The first number of each campaign's people."""
NOTICED = "no longer as running"
ENDED = "Sending was stopped"
"""In the log of a try that has ended."""
KILLED = ("shouldn't be running anymore", "Task killed", "Terminating instance")
"""What Airflow says where it is the one that ends a task."""

DAGS = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

for dag_id, source in {sources!r}.items():
    with DAG(dag_id, schedule=None, default_args={{"retries": 2, "retry_delay": 1}}) as dag:
        BulkSmsOperator(task_id="send", source=source, message="Hi", chunk_size=10, concurrency=2)
    globals()[dag_id] = dag
"""

SETTINGS = {
    # Airflow notices what happened to a task after the send would have ended: all that stops it before is ours.
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "120",
    "AIRFLOW__SCHEDULER__LOCAL_TASK_JOB_HEARTBEAT_SEC": "120",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "600",
}


@pytest.fixture
def airflow(tmp_path, sandbox):
    """Run an Airflow with two campaigns, and a service whose answers take their time."""
    home, sources = tmp_path / "airflow", {}
    (home / "dags").mkdir(parents=True)
    for dag_id, first in FIRST.items():
        sources[dag_id] = str(tmp_path / f"{dag_id}.parquet")
        pq.write_table(pa.table({"destination": [str(first + n) for n in range(PEOPLE)]}), sources[dag_id])
    (home / "dags" / "campaigns.py").write_text(DAGS.format(sources=sources))
    connection = {"conn_type": "sms", "host": sandbox.base_url, "password": TOKEN}
    settings = {
        **SETTINGS,
        "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(connection),
        "AIRFLOW__SMS__LEDGER_PATH": str(tmp_path / "ledger.db"),
    }
    with running_airflow(home, settings) as airflow:
        yield airflow


@pytest.fixture
def send(airflow, sandbox):
    """Start a campaign, and return when it is under way."""

    def send(dag_id):
        sandbox.state.set_faults([{"kind": "delay", "seconds": 0.2, "persistent": True}])
        airflow.trigger(dag_id, "first")
        until(lambda: len(texted(sandbox, dag_id)) >= PEOPLE // 10, seconds=RUN_SECONDS, what=f"{dag_id} sends")

    return send


def texted(sandbox, dag_id):
    """Count how often each person of a campaign was texted."""
    numbers = Counter(int(message.destination) for message in list(sandbox.state.accepted))
    return Counter({n: times for n, times in numbers.items() if FIRST[dag_id] <= n < FIRST[dag_id] + PEOPLE})


def noticed(airflow, dag_id):
    """Wait until a try has logged that it was taken away, and give all that the tasks of the DAG have logged."""

    def logs():
        found = [path for path in (airflow.home / "logs").rglob("*.log") if f"dag_id={dag_id}" in str(path)]
        log = "".join(path.read_text() for path in found)
        return log if NOTICED in log and ENDED in log else None

    return until(logs, seconds=RUN_SECONDS, what=f"{dag_id} notices")


def test_a_task_that_is_failed_or_cleared_stops_before_airflow_ends_it(airflow, send, sandbox):
    """Through Airflow's API as in its web page: nothing more is sent, and after a clear the next try sends the rest."""
    send("marked")
    airflow.mark("marked", "first", "send", "failed")
    log = noticed(airflow, "marked")
    assert [word for word in KILLED if word in log] == []
    assert airflow.await_end("marked", "first") == "failed"
    ((_, summary),) = airflow.summaries("marked", "first")
    assert sum(summary[name] for name in COUNTS) == summary["rows"] == PEOPLE
    assert (summary["unknown"], summary["not_sent"]) == (0, PEOPLE - summary["accepted"])
    assert len(texted(sandbox, "marked")) == summary["accepted"] < PEOPLE
    assert set(texted(sandbox, "marked").values()) == {1}

    send("cleared")
    airflow.clear("cleared", "first")
    assert [word for word in KILLED if word in noticed(airflow, "cleared")] == []
    assert len(texted(sandbox, "cleared")) < PEOPLE
    sandbox.state.set_faults([])
    assert airflow.await_end("cleared", "first") == "success"
    ((_, summary),) = airflow.summaries("cleared", "first")
    assert 0 < summary["already_sent"] < PEOPLE == summary["already_sent"] + summary["accepted"]
    assert set(texted(sandbox, "cleared").values()) == {1}
