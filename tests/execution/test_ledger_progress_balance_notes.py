from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest
from sqlalchemy import create_engine, inspect, text
from support.sending import Clock

from airflow_provider_sms.execution import ledger_progress
from airflow_provider_sms.execution.ledger_progress import BalanceNotes
from airflow_provider_sms.hooks.ledger import open_ledger


@pytest.fixture
def clock():
    return Clock(0.0)


@pytest.fixture
def notes(airflow_home, ledger_path, clock):
    return BalanceNotes("sms_default", clock)


@pytest.fixture
def made(airflow_home, ledger_path):
    """Make the ledger in a file, as a task that sends would."""
    open_ledger(None).close()


@pytest.fixture
def server(postgres_url, ledger_path, monkeypatch):
    """A database on a server that the configuration names as the ledger."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": postgres_url.username}))
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def recorded(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT conn_id, amount FROM sms_balance ORDER BY id").fetchall()


def test_a_balance_is_recorded_in_the_ledger_of_the_tasks(made, notes, ledger_path):
    """With its connection, and as null where the account is post-paid."""
    notes.record(Decimal("99.5"))
    notes.record(None)
    assert recorded(ledger_path) == [("sms_default", "99.5"), ("sms_default", None)]


def test_no_ledger_is_made(notes, ledger_path, caplog):
    """Where nothing was sent yet nothing is recorded, and nobody is bothered with that; later it is."""
    notes.record(Decimal(5))
    assert not ledger_path.exists()
    assert caplog.text == ""
    open_ledger(None).close()
    notes.record(Decimal(5))
    assert recorded(ledger_path) == [("sms_default", "5")]


def test_no_ledger_is_made_on_a_server(server, notes):
    """A database without a ledger stays without one; one that has it gets the balance."""
    notes.record(Decimal(5))
    assert inspect(server).get_table_names() == []
    open_ledger(None).close()
    notes.record(Decimal(5))
    assert server.execute(text("SELECT conn_id, amount FROM sms_balance")).fetchall() == [("sms_default", "5")]


def test_the_ledger_is_opened_for_what_is_new(made, notes, ledger_path, clock, monkeypatch):
    """A sensor that looks each minute opens it when the balance has changed, or an hour has gone by."""
    opened = []

    def count(*arguments, **options):
        opened.append(clock.now)
        return balance_notes_open(*arguments, **options)

    balance_notes_open = ledger_progress.open_existing_ledger
    monkeypatch.setattr(ledger_progress, "open_existing_ledger", count)
    for minute in range(130):
        clock.now = 60.0 * minute
        notes.record(Decimal(5 if minute < 125 else 6))
    assert opened == [0.0, 61 * 60.0, 122 * 60.0, 125 * 60.0]


@pytest.mark.parametrize("wrong", ["a folder", "no database", "no such connection"])
def test_a_ledger_that_cannot_be_opened_is_left_alone(notes, ledger_path, monkeypatch, caplog, wrong):
    """It is logged once, and not tried again in the same process."""
    if wrong == "no such connection":
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "nowhere")
    elif wrong == "no database":
        ledger_path.write_text("not a database, but long enough to be one" * 10)
    else:
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", str(ledger_path / "none.db"))
        ledger_path.mkdir()
    for _ in range(2):
        notes.record(Decimal(5))
    assert caplog.text.count("Balances are not recorded in the ledger: ") == (wrong != "a folder")


def test_an_interruption_gets_through(made, notes, monkeypatch):
    """What Airflow raises to end a task, such as its timeout, is no failure of the ledger."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_progress, "open_existing_ledger", interrupt)
    with pytest.raises(KeyboardInterrupt):
        notes.record(Decimal(5))
