from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.faults.airflow import a_ledger
from support.faults.standalone import running_airflow

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox

DAGS = Path(__file__).parents[2] / "dags"
TOKEN = "a-token-that-nobody-may-see"
OWN_CODE = ("dag_code", "serialized_dag")
"""Tables with the code of DAGs, which Airflow stores and shows: rows that are written in it are there."""
PATIENT = {
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "300",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "300",
}
"""Nothing is killed here, and a busy machine is not to be taken for a dead scheduler."""
OWN_DATA = {
    ("example_sms_from_dataframe", "overdue_invoices", "return_value"),  # rows that a task of the user's returns
    ("example_sms_campaign", "text_staff", "return_value"),  # a group's raw answer, with a sample of its text
}
"""XComs that hold people, by DAG, task and key; and so does each one with the key ``responses``."""


def partitions(folder):
    """Write what the example that maps partitions reads, and give its params."""
    folder.mkdir()
    for part in range(2):
        columns = {
            "destination": [f"083{part}{number:06}" for number in range(250)],
            "first_name": [f"Name{number}" for number in range(250)],
            "amount": [99.5] * 250,
            "city": ["Durban"] * 250,
        }
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")
    return {"directory": str(folder), "campaign": "spring"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Every example, run by a real Airflow: its home and what the service took."""
    folder = tmp_path_factory.mktemp("privacy")
    home = folder / "airflow"
    shutil.copytree(DAGS, home / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    params = {"example_sms_partitions": partitions(folder / "partitions")}
    with (
        running_sandbox(SandboxConfig(token=TOKEN, post_paid=True)) as sandbox,
        a_ledger("postgresql", folder) as (settings, _),
        running_airflow(home, {**settings, **PATIENT}) as airflow,
    ):
        # In Airflow's database, not in the environment: there it must not be readable either.
        connection = {"connection_id": "sms_default", "conn_type": "sms", "host": sandbox.base_url, "password": TOKEN}
        airflow.call("POST", "/api/v2/connections", **connection)
        airflow.call("POST", "/api/v2/pools", name="sms_account", slots=2)
        states = {}
        for dag_id in sorted(path.stem for path in DAGS.glob("*.py")):
            airflow.trigger(dag_id, "once", **params.get(dag_id, {}))
        for dag_id in sorted(path.stem for path in DAGS.glob("*.py")):
            states[dag_id] = airflow.await_end(dag_id, "once")
        taken = sandbox.state.accepted
    return home, states, taken


def secrets(taken):
    """Give what may stand nowhere: the token, each number without its prefix, each text that was made for somebody.

    A group's text is the template itself, which is shown as it is.
    """
    theirs = [message for message in taken if message.kind == "bulk"]
    return {TOKEN, *(message.destination[-9:] for message in theirs), *(message.content for message in theirs)}


def found(words, text):
    """Say how many of the words stand in a text, without saying which."""
    return sum(word in text for word in words)


def test_every_example_ran_and_texted_people(ran):
    """The others prove nothing about a run that sent nothing."""
    _, states, taken = ran
    assert states["example_sms_campaign"] == states["example_sms_partitions"] == "success"
    assert len(taken) > 1500


def test_no_log_holds_a_number_a_text_or_the_token(ran):
    """Logs of tasks, triggers, the scheduler and the API server name nobody."""
    home, _, taken = ran
    words = secrets(taken)
    logs = [path for path in (*home.glob("*.out"), *(home / "logs").rglob("*.log")) if path.is_file()]
    holding = [path.name for path in logs if found(words, path.read_text(errors="replace"))]
    assert len(logs) > len(ran[1])
    assert holding == []


def test_airflows_database_holds_them_only_where_it_is_documented(ran):
    """Rendered fields, triggers, task state, events: each table and column, but for XComs that are said to do so."""
    home, _, taken = ran
    words = secrets(taken)
    holding, read = [], 0
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        database.row_factory = sqlite3.Row
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(tables) - set(OWN_CODE)):
            for row in database.execute(f'SELECT * FROM "{table}"'):
                if table == "xcom" and documented(row):
                    continue
                read += 1
                values = [bytes(each).decode(errors="replace") if isinstance(each, bytes) else each for each in row]
                if found(words, json.dumps(values, default=str, ensure_ascii=False)):
                    holding.append((table, row["key"] if table == "xcom" else None))
    assert read > 100
    assert holding == []


def documented(row):
    return row["key"] == "responses" or (row["dag_id"], row["task_id"], row["key"]) in OWN_DATA


def test_no_file_of_airflow_holds_the_token(ran):
    """Nowhere, whatever kind of file it is: also not where a row was deleted."""
    home, _, _ = ran
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path.name for path in files if TOKEN.encode() in path.read_bytes()] == []
