from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from airflow_provider_sms.operators.sms import BulkSmsOperator, SqlSource

SELECT = "SELECT destination, first_name FROM people"


@pytest.fixture(autouse=True)
def people_db(sms_default, ledger_path, tmp_path, monkeypatch):
    """A connection to a SQLite database with three people."""
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (destination TEXT, first_name TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(f"2782000000{n}", f"Name{n}") for n in range(3)])
    monkeypatch.setenv("AIRFLOW_CONN_PEOPLE_DB", json.dumps({"conn_type": "sqlite", "host": str(path)}))
    return path


def test_the_people_of_a_query_are_texted(send, witnessed):
    """A query is a source, and a list of whom not to text; of its parameters nothing is shown or logged."""
    source = SqlSource("people{{ '_db' }}", SELECT + " WHERE first_name <> {{ '?' }}", ["Name{{ 1 + 1 }}"])
    ran = send(source, campaign="one", suppress=SqlSource("people_db", "SELECT '27820000001' AS mobile"))
    assert (ran.summary["accepted"], ran.summary["suppressed"]) == (1, 1)
    assert set(witnessed()) == {("27820000000", "Hi Name0")}
    assert ran.rendered["source"] == f"SqlSource of connection people_db: {SELECT} WHERE first_name <> ?"
    assert "Reading the query of connection people_db" in ran.log
    assert "Checking every row of query of connection people_db" in ran.log
    assert "Name2" not in ran.log
    assert source.conn_id == "people{{ '_db' }}"


def test_an_attempt_renders_its_own_query():
    """Airflow renders the DAG's source for each attempt, and an earlier one leaves nothing of its own in it."""
    source = SqlSource("people_db", "SELECT '{{ ds }}' AS destination", {"day": "{{ ds }}"})
    task = BulkSmsOperator(task_id="send", source=source, message="Hi")
    for day in ("2026-03-01", "2026-03-02"):
        rendered = task.render_template(task.source, {"ds": day, "task": task})
        assert (rendered.sql, rendered.parameters) == (f"SELECT '{day}' AS destination", {"day": day})
