from __future__ import annotations

import pytest

from airflow_provider_sms.hooks.stored_connection import stored_connection


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
