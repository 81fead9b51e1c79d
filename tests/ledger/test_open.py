from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL

from airflow_provider_sms.exceptions import InputError, LedgerError, LedgerVersionError
from airflow_provider_sms.ledger.open import MIGRATIONS, require_ledger
from airflow_provider_sms.ledger.postgres import open_postgres
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


def test_an_older_ledger_is_migrated_step_by_step(open_store, monkeypatch):
    """Each migration runs once, in order, on a ledger that has the new tables already and keeps what it holds."""
    store, ran = open_store(), []

    def from_3(connection):
        assert connection.execute(text("SELECT count(*) FROM sms_balance")).scalar() == 0
        ran.append(3)

    monkeypatch.setitem(MIGRATIONS, 3, from_3)
    monkeypatch.setitem(MIGRATIONS, 4, lambda connection: ran.append(4))
    of_version(store, 3, "DROP TABLE sms_balance", "INSERT INTO sms_campaign (name, created_at) VALUES ('c', 1)")
    open_store()
    assert ran == [3, 4]
    open_store()
    assert ran == [3, 4]
    assert sql(store, "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]
    assert sql(store, "SELECT name FROM sms_campaign") == [("c",)]


def test_a_migration_that_fails_changes_nothing(open_store, monkeypatch):
    """Tables, version and rows are committed together."""
    store = open_store()

    def broken(connection):
        connection.execute(text("DELETE FROM sms_campaign"))
        connection.execute(text("SELECT broken"))

    monkeypatch.setitem(MIGRATIONS, 4, broken)
    of_version(store, 4, "INSERT INTO sms_campaign (name, created_at) VALUES ('c', 1)")
    with pytest.raises(LedgerError, match="broken"):
        open_store()
    assert sql(store, "SELECT version FROM sms_ledger_version") == [(4,)]
    assert sql(store, "SELECT name FROM sms_campaign") == [("c",)]


@pytest.mark.parametrize("known", [{}, {4: None}])
def test_an_older_ledger_without_a_migration_is_refused(open_store, monkeypatch, known):
    """One step that is missing is enough; nothing is created, and the error says what to do."""
    store = open_store()
    for version, migration in known.items():
        monkeypatch.setitem(MIGRATIONS, version, migration)
    of_version(store, 3)
    with pytest.raises(LedgerVersionError, match=r"too old: .* Nothing was sent. Install the airflow-p"):
        open_store()
    assert sql(store, "SELECT version FROM sms_ledger_version") == [(3,)]


def indexes(store):
    with store.read() as connection:
        found = inspect(connection)
        return {
            (table, index["name"], tuple(index["column_names"]))
            for table in found.get_table_names()
            for index in found.get_indexes(table)
        }


def test_a_ledger_of_version_5_gets_the_indexes_of_the_pages(open_store):
    """On a server as in a file: without them a page reads every request of a campaign, and every attempt."""
    store = open_store()
    new = {
        ("sms_claimant", "sms_claimant_run", ("dag_id", "run_id")),
        ("sms_request", "sms_request_campaign_claimant", ("campaign_id", "claimant_id")),
    }
    assert new <= indexes(store)
    of_version(store, 5, *(f"DROP INDEX {name}" for _, name, _ in sorted(new)))
    assert not new & indexes(store)
    assert new <= indexes(open_store())
    assert sql(store, "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize("there", [(), ("account", "evidence")])
def test_a_ledger_of_version_6_gets_the_columns_of_accounts(postgres_ledger_url, there):
    """Those that it lacks, on a server; ``test_open_versions.py`` tells of files."""

    def columns(store):
        with store.read() as connection:
            return {column["name"]: str(column["type"]) for column in inspect(connection).get_columns("sms_request")}

    new = {"account", "planned_parts", "least_price", "most_price", "remaining_balance", "evidence"}
    with closing(open_postgres(postgres_ledger_url)) as store:
        of_today, its_indexes = columns(store), indexes(store)
        dropped = [f"ALTER TABLE sms_request DROP COLUMN {name}" for name in sorted(new.difference(there))]
        of_version(store, 6, "DROP INDEX IF EXISTS sms_request_account", *dropped, "DROP TABLE sms_balance_reading")
        assert columns(store).keys() == of_today.keys() - new.difference(there)
    with closing(open_postgres(postgres_ledger_url)) as store:
        assert (columns(store), indexes(store)) == (of_today, its_indexes)
        assert sql(store, "SELECT version FROM sms_ledger_version") == [(SCHEMA_VERSION,)]


def test_a_database_without_a_ledger_is_refused(tmp_path):
    """A person at a terminal creates no ledger by mistyping its path."""
    url = URL.create("sqlite", database=str(tmp_path / "other.db"))
    with create_engine(url).begin() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER)"))
    with pytest.raises(InputError, match="The file x holds no ledger"):
        require_ledger(url, "The file x")


@pytest.mark.parametrize("linked", [False, True], ids=["no file", "a link that leads nowhere"])
def test_looking_for_a_ledger_makes_no_file(tmp_path, linked):
    """SQLite would make the file, behind a link as well, with a mode by which everybody could read who was texted."""
    if linked:
        (tmp_path / "ledger.db").symlink_to(tmp_path / "disk.db")
    with pytest.raises(LedgerError):
        require_ledger(URL.create("sqlite", database=str(tmp_path / "ledger.db")), "The file x")
    assert [path for path in tmp_path.iterdir() if not path.is_symlink()] == []
