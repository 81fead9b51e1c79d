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
def audit_log_fails():
    """Make Airflow's database refuse the rows of an event."""
    from airflow.models.log import Log
    from sqlalchemy import event
    from sqlalchemy.exc import OperationalError

    refused = []

    def refuse(mapper, connection, row):
        if row.event in refused:
            raise OperationalError("INSERT", {}, Exception("no route to airflow.db.internal"))

    def fail(name):
        refused[:] = [name]

    event.listen(Log, "before_insert", refuse)
    yield fail
    event.remove(Log, "before_insert", refuse)


@pytest.fixture
def vic(site):
    """A viewer."""
    from support.plugins import Person

    return Person(site, "vic")
