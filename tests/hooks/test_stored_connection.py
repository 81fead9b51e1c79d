from __future__ import annotations

import os

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_sms.hooks.stored_connection import lent_to_hooks, stored_connection


@pytest.fixture
def stored(airflow_home):
    """A connection in Airflow's database."""
    from airflow.models.connection import Connection as StoredConnection
    from airflow.utils.session import create_session

    made = StoredConnection(
        conn_id="stored-1", conn_type="sms", host="https://a.example/v1", password="p:@/%", extra='{"timeout": 9}'
    )
    with create_session() as session:
        session.add(made)
    yield "stored-1"
    with create_session() as session:
        session.query(StoredConnection).filter(StoredConnection.conn_id == "stored-1").delete()


def test_a_stored_connection_is_found_outside_a_task(stored):
    """In Airflow's database; None where there is no such connection."""
    assert (stored_connection(stored).host, stored_connection("nowhere")) == ("https://a.example/v1", None)


def test_hooks_find_a_lent_connection(stored):
    """With every field, as long as it is lent; one that Airflow does not have stays unknown to them."""
    with lent_to_hooks(stored, "nowhere"):
        found = BaseHook.get_connection(stored)
        assert (found.host, found.password, found.extra_dejson) == ("https://a.example/v1", "p:@/%", {"timeout": 9})
        with pytest.raises(AirflowNotFoundException):
            BaseHook.get_connection("nowhere")
    assert "AIRFLOW_CONN_STORED-1" not in os.environ


def test_a_connection_of_the_environment_stays_there(monkeypatch):
    """It is found anyway, and is not taken away at the end."""
    monkeypatch.setenv("AIRFLOW_CONN_OF_ENVIRONMENT", '{"conn_type": "sms", "host": "b"}')
    with lent_to_hooks("of_environment"):
        pass
    assert os.environ["AIRFLOW_CONN_OF_ENVIRONMENT"] == '{"conn_type": "sms", "host": "b"}'
