from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import create_engine, text
from support.pages import ROOT, blocks

from airflow_provider_sms.ledger.open import MIGRATIONS, stored_version
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.postgres_engine import describe
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION


@pytest.fixture
def url(postgres_url, airflow_home, monkeypatch):
    """A database without a ledger, which the connection ``owner`` leads to."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_OWNER", json.dumps({**fields, "login": postgres_url.username}))
    return postgres_url


@pytest.fixture
def of_version(url):
    """Make a ledger, and write another version into it."""

    def of_version(version):
        open_postgres(url).close()
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE sms_ledger_version SET version = {version}"))
        engine.dispose()

    return of_version


def test_the_tables_are_created_once(ledger, url):
    """The command asks, and the next time nothing is to do."""
    said = ledger("migrate", "--ledger-conn-id", "owner")
    assert (said.status, "there is no terminal to ask at" in said.err) == (1, True)
    assert stored_version(url) is None
    said = ledger("migrate", "--ledger-conn-id", "owner", "--yes")
    assert (said.status, said.out) == (0, "")
    (shown,) = [block.code for block in blocks(ROOT / "docs" / "ledger-command.md", "text") if "migrate" in block.code]
    shown = re.sub(r"version \d+", f"version {SCHEMA_VERSION}", shown)
    described = describe(url.set(host=url.query["host"]))
    for line in shown.replace("PostgreSQL, database sms at db.example.com", described).splitlines()[1:]:
        assert line in said.err
    assert stored_version(url) == SCHEMA_VERSION
    said = ledger("migrate", "--ledger-conn-id", "owner")
    assert (said.status, "nothing to do" in said.err) == (0, True)


def test_an_older_ledger_is_upgraded(ledger, of_version, url, monkeypatch):
    """After a question that says which tasks refuse the ledger then; the ledger is of this version afterwards."""
    of_version(SCHEMA_VERSION - 1)
    monkeypatch.setitem(MIGRATIONS, SCHEMA_VERSION - 1, lambda connection: None)
    said = ledger("migrate", "--ledger-conn-id", "owner", "--yes")
    assert said.status == 0
    assert f"holds a ledger of version {SCHEMA_VERSION - 1}. This upgrades it to version {SCHEMA_VERSION}." in said.err
    assert "refuse the ledger, and send nothing" in said.err
    assert stored_version(url) == SCHEMA_VERSION


def test_a_newer_ledger_is_left_as_it_is(ledger, of_version, url):
    """The error says what to upgrade."""
    of_version(SCHEMA_VERSION + 1)
    said = ledger("migrate", "--ledger-conn-id", "owner", "--yes")
    assert (said.status, "Upgrade airflow-provider-sms here" in said.err) == (1, True)
    assert stored_version(url) == SCHEMA_VERSION + 1


def test_it_is_for_a_server(ledger, airflow_home, ledger_path):
    """A ledger in a file is its tasks' own: nobody creates one by mistyping a path."""
    said = ledger("migrate", "--yes")
    assert (said.status, "There is no connection to a ledger in PostgreSQL" in said.err) == (1, True)
    assert not ledger_path.exists()
    said = ledger("migrate", "--ledger-conn-id", "nowhere", "--yes")
    assert (said.status, "Airflow has no connection 'nowhere'" in said.err) == (1, True)
