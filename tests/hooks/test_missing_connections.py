"""Connections that Airflow does not find, because there are none or because it could not look."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from support.airflow import run_task

from airflow_provider_sms.exceptions import InputError, NoConnectionError
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.operators.sms import BulkSmsOperator

PERSON = "27820000001"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A connection to a database with a person in it."""
    with closing(sqlite3.connect(tmp_path / "people.db")) as database:
        database.execute(f"CREATE TABLE people AS SELECT '{PERSON}' AS destination")
        database.commit()
    monkeypatch.setenv("AIRFLOW_CONN_PEOPLE", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "people.db")}))


@pytest.mark.parametrize("name", ["sms_default", "people"])
def test_a_look_up_that_fails_once_is_tried_again(sms_default, ledger_path, witnessed, monkeypatch, people, name):
    """A secrets backend that fails looks like a missing connection: the next try finds it, and texts everybody once."""
    look_up, failing = BaseHook.get_connection, [name]

    def get_connection(conn_id):
        if conn_id in failing:
            failing.remove(conn_id)
            # As Airflow does once each backend that it asked has failed, or knows nothing.
            raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
        return look_up(conn_id)

    monkeypatch.setattr(BaseHook, "get_connection", staticmethod(get_connection))
    source = SqlSource("people", "SELECT destination FROM people")
    ran = run_task(lambda: BulkSmsOperator(task_id="send", source=source, message="Hi"), retries=1)
    assert (ran.state, ran.tries, dict(witnessed())) == ("success", 2, {(PERSON, "Hi"): 1})
    assert "its look-up may have failed" in ran.log


@pytest.mark.parametrize(
    "look_up",
    [
        lambda: SmsHook("nowhere").get_settings(),
        lambda: open_ledger("nowhere"),
        lambda: SqlSource("nowhere", "SELECT 1").open("suppress"),
    ],
    ids=["sms", "ledger", "source"],
)
def test_a_missing_connection_may_be_there_the_next_time(airflow_home, look_up):
    """Each of the three kinds says that the look-up may have failed, and is worth a retry; other mistakes are not."""
    with pytest.raises(
        NoConnectionError, match=r"'nowhere'.* its look-up may have failed.* Otherwise create"
    ) as raised:
        look_up()
    assert (raised.value.transient, InputError("wrong").transient) == (True, False)
