from __future__ import annotations

import pytest

from airflow_provider_sms.ledger.reader import read_postgres, read_sqlite


@pytest.fixture
def open_reader(request, tmp_path, open_store):
    """Open this test's ledger as a page does."""
    opened = []

    def open_reader():
        if request.node.callspec.params["open_store"] == "sqlite":
            opened.append(read_sqlite(tmp_path / "ledger.db"))
        else:
            opened.append(read_postgres(request.getfixturevalue("postgres_url")))
        return opened[-1]

    yield open_reader
    for each in opened:
        each.close()


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()
