from __future__ import annotations

import pytest
from support.versions import SHOWS_PAGES

from airflow_provider_sms.ledger.sqlite import open_sqlite

if not SHOWS_PAGES:
    # This Airflow has no place for the application.
    collect_ignore = [
        "test_actions.py",
        "test_app.py",
        "test_authorization.py",
        "test_csrf.py",
        "test_lookup_rights.py",
        "test_pages.py",
    ]


@pytest.fixture
def store(ledger_path):
    """The configured ledger, as tasks that send open it."""
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


@pytest.fixture
def vic(site):
    """A viewer."""
    from support.plugins import Person

    return Person(site, "vic")
