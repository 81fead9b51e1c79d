from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from support.told import tell

from airflow_provider_sms.exceptions import InputError, LedgerError, LedgerVersionError
from airflow_provider_sms.ledger import sqlite
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.monitoring.campaigns import dags_of_campaign


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO sms_campaign (id, name, created_at) VALUES (9, 'x', 0)",
        "UPDATE sms_version SET version = 9",
        "DELETE FROM sms_attempt",
        "DROP TABLE sms_balance",
    ],
)
def test_a_reader_cannot_write(store, ledger, change):
    """Whatever a page does, the ledger stays as it is."""
    tell(store)
    with pytest.raises((LedgerError, SQLAlchemyError)), ledger.read() as connection:
        connection.execute(text(change).execution_options(autocommit=True))
    assert dags_of_campaign(ledger, 1) == {"d"}


def test_a_reader_waits_for_no_writer_and_keeps_none_waiting(store, ledger):
    """A page is shown while a claim is being written, and a claim is written while a page is being made."""
    tell(store, "spring")
    with store.write(1) as writing, ledger.read() as reading:
        writing.execute(text("INSERT INTO sms_campaign (name, created_at) VALUES ('other', 0)"))
        assert reading.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1
    with ledger.read() as reading:
        assert reading.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 2
        tell(store, "third")
        assert reading.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 2, "one look, one state"


def test_a_database_without_a_ledger_is_refused_in_words(tmp_path):
    """A page makes neither tables nor a file."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(InputError, match="holds no ledger"):
        open_sqlite(path, create=False)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
    with pytest.raises(LedgerError):
        open_sqlite(tmp_path / "none.db", create=False)
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


def test_a_statement_that_takes_too_long_is_ended_in_words(store, open_reader, monkeypatch):
    """On a server and in a file: a page must not read for as long as the ledger is large."""
    tell(store)
    monkeypatch.setattr(sqlite, "_STEPS", 100)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT count(*) FROM n"
    )
    began = time.monotonic()
    with pytest.raises(LedgerError, match="cannot be read in time"), open_reader(0.05).read() as connection:
        connection.execute(text(endless))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("version", [99, 0])
def test_a_ledger_of_another_version_is_left_as_it_is(open_store, open_reader, version):
    """Neither a task nor a page creates or changes anything in it, and the error says what to do."""
    with open_store().write(1) as connection:
        connection.execute(text("DROP TABLE sms_balance"))
        connection.execute(text(f"UPDATE sms_version SET version = {version}"))
    for opens in (open_store, open_reader, open_store):
        with pytest.raises(LedgerVersionError, match=f"has version {version}, .* Install the one that wrote it"):
            opens()
