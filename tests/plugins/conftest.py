from __future__ import annotations

import pytest
from support.versions import SHOWS_PAGES

from airflow_provider_sms.ledger.sqlite import open_sqlite

if not SHOWS_PAGES:
    # They are of an application that this Airflow cannot have.
    collect_ignore = ["test_access.py", "test_acts.py", "test_forgery.py", "test_pages.py"]


@pytest.fixture
def store(ledger_path):
    """The configured ledger, as those who send have it."""
    opened = open_sqlite(ledger_path)
    yield opened
    opened.close()


@pytest.fixture
def site(airflow_home, ledger_path, monkeypatch):
    """The pages, mounted as Airflow's web server mounts them, with its own users."""
    from support.plugins import Site

    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "vic:viewer,ed:user,ann:admin")
    with Site() as site:
        yield site
