from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.reader import read_postgres, read_sqlite
from airflow_provider_sms.ledger.sqlite import open_sqlite


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where this test's ledger is; in each kind of database."""
    return request.getfixturevalue("postgres_url") if request.param == "postgresql" else tmp_path / "ledger.db"


@pytest.fixture
def store(place):
    """The ledger, as those who send have it."""
    opened = open_sqlite(place) if hasattr(place, "exists") else open_postgres(place)
    yield opened
    opened.close()


@pytest.fixture
def open_reader(place):
    """Open the ledger as a page does."""
    opened = []

    def open_reader():
        opened.append(read_sqlite(place) if hasattr(place, "exists") else read_postgres(place))
        return opened[-1]

    yield open_reader
    for each in opened:
        each.close()


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()
