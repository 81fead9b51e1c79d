from __future__ import annotations

import json

import pytest
from sqlalchemy import create_engine, text


@pytest.fixture
def sms_ledger(postgres_url, monkeypatch):
    """Point the connection ``sms_ledger`` at an empty database."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": postgres_url.username}))
    return postgres_url


def states(url):
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT state, sum(submitted) FROM sms_request GROUP BY state")).all()
    engine.dispose()
    return {state: int(count) for state, count in rows}


def test_a_campaign_in_postgresql_goes_out_once(send, people, sms_ledger, sandbox, witnessed, ledger_path):
    """A task given a connection keeps its claims there, and no file is made."""
    source = people(250)
    ran = send(source, campaign="spring", ledger_conn_id="sms_ledger")
    again = send(source, campaign="spring", ledger_conn_id="{{ 'sms_ledger' }}")
    assert (ran.summary["accepted"], again.summary["already_sent"]) == (250, 250)
    assert (set(witnessed().values()), states(sms_ledger), ledger_path.exists()) == ({1}, {"accepted": 250}, False)


def test_lost_answers_are_unknown_in_postgresql_too(send, people, sms_ledger, sandbox, witnessed, monkeypatch):
    """The configuration's connection is used where the task names none; the protocol is the same."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")
    sandbox.state.set_faults([{"kind": "drop_after", "times": 3}])
    source = people(1000)
    ran = send(source, campaign="spring", retries=1)
    again = send(source, campaign="spring")
    assert [run.summary["unknown"] for run in (ran, again)] == [300, 300]
    assert (ran.summary["accepted"], again.summary["already_sent"]) == (700, 700)
    assert states(sms_ledger) == {"accepted": 700, "unknown": 300}
    assert set(witnessed().values()) == {1}


def test_a_database_that_cannot_be_reached_sends_nothing(send, people, sandbox, tmp_path, monkeypatch):
    """Without a durable claim nothing goes out; Airflow may retry."""
    connection = {"conn_type": "postgres", "host": str(tmp_path), "login": "nobody", "password": "pass-word-1"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps(connection))
    ran = send(people(5), ledger_conn_id="sms_ledger", retries=1)
    assert (ran.state, ran.tries, ran.summary["not_sent"], sandbox.state.requests) == ("failed", 2, 5, [])
    assert ("The ledger cannot be" in ran.log, "pass-word-1" in ran.log) == (True, False)


def test_the_guard_holds_in_airflow_and_can_be_overridden(send, people, sandbox, monkeypatch):
    """A deployment whose executor is remote is refused until it says that its disk is shared."""
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "airflow.executors.local_executor.LocalExecutor,my.RemoteExecutor")
    ran = send(people(5), retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert "RemoteExecutor runs tasks on several machines" in ran.log
    monkeypatch.setenv("AIRFLOW__SMS__ALLOW_LOCAL_LEDGER", "True")
    assert send(people(5)).state == "success"
