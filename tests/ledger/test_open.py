from __future__ import annotations

import pytest
from sqlalchemy import text

from airflow_provider_sms.exceptions import LedgerError, LedgerVersionError
from airflow_provider_sms.ledger.open import MIGRATIONS
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION


def sql(store, *statements):
    """Run statements in a ledger, and return the rows of the last one."""
    with store.write(1) as connection:
        for statement in statements:
            result = connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


def of_version(store, version, *statements):
    sql(store, *statements, f"UPDATE sms_ledger_version SET version = {version}")


def test_a_new_ledger_records_its_version_once(open_store):
    """Opening it again changes nothing."""
    open_store()
    assert sql(open_store(), "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]


def test_a_newer_ledger_is_left_as_it_is(open_store):
    """Nothing is created in it, and the error says what to do."""
    of_version(open_store(), 99, "DROP TABLE sms_balance")
    with pytest.raises(LedgerVersionError, match="Upgrade airflow-provider-sms"):
        open_store()
    with pytest.raises(LedgerVersionError):
        open_store()


def test_an_older_ledger_is_migrated_step_by_step_or_left_as_it_is(open_store, monkeypatch):
    """Tables, version and rows are committed together; where a step is missing or fails, nothing changes."""
    store, ran = open_store(), []

    def step(connection):
        assert connection.execute(text("SELECT count(*) FROM sms_balance")).scalar() == 0
        connection.execute(text("UPDATE sms_campaign SET name = 'new'"))
        ran.append(connection.execute(text("SELECT version FROM sms_ledger_version")).scalar())

    def broken(connection):
        connection.execute(text("SELECT broken"))

    of_version(store, -1, "DROP TABLE sms_balance", "INSERT INTO sms_campaign (name, created_at) VALUES ('old', 1)")
    for known, error in (
        ({}, "too old: .* Nothing was sent. Install the"),
        ({-1: step}, "too old"),
        ({0: broken}, "broken"),
    ):
        for version, migration in known.items():
            monkeypatch.setitem(MIGRATIONS, version, migration)
        with pytest.raises(LedgerError, match=error):
            open_store()
        assert sql(store, "SELECT version FROM sms_ledger_version") == [(-1,)]
        assert sql(store, "SELECT name FROM sms_campaign") == [("old",)]
    ran.clear()
    monkeypatch.setitem(MIGRATIONS, 0, step)
    for _ in range(2):
        open_store()
    assert len(ran) == 2
    assert sql(store, "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]
    assert sql(store, "SELECT name FROM sms_campaign") == [("new",)]
