from __future__ import annotations

import pytest
from support.faults import pairs

from airflow_provider_sms.sending.postgres import open_postgres
from airflow_provider_sms.sending.sqlite import open_sqlite


@pytest.fixture(params=["sqlite", "postgresql"])
def open_store(request, tmp_path):
    """Open this test's ledger, as one more process would; in each kind of database."""
    if request.param == "sqlite":
        return lambda: open_sqlite(tmp_path / "ledger.db")
    url = request.getfixturevalue("postgres_url")
    return lambda: open_postgres(url)


def test_live_senders_of_one_campaign_text_everybody_exactly_once(open_store, capfd):
    """Threads, processes and mapped tasks whose parts overlap leave nobody out, and nothing is unknown."""
    figures = pairs.run(open_store, quick=True)
    assert (figures.cases, figures.broken, figures.unknown, capfd.readouterr().err) == (40, 0, 0, "")
