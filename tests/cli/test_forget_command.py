from __future__ import annotations

from support.sending import people

from airflow_provider_sms.ledger import sqlite
from airflow_provider_sms.ledger.model import UNKNOWN

PERSON, OTHER = people(2)
NUMBER = PERSON.destination


def held_in(path):
    """Return whether the file of the ledger, or its log, holds the number of each of the two people."""
    content = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    return [int(each.destination).to_bytes(6, "big") in content for each in (PERSON, OTHER)]


def test_a_person_at_a_terminal_forgets_a_number(ledger, sent, rows, holders, at_terminal, ledger_path):
    """The command says what it found, what that means, what it removed, and what is left; nothing without a yes."""
    sent([PERSON, OTHER])
    sent([PERSON], UNKNOWN, campaign="summer")
    at_terminal("n\n")
    said = ledger("forget", NUMBER)
    assert (said.status, said.err.splitlines()[0].endswith(" has 2 messages to this number")) == (1, True)
    assert ledger("who", NUMBER).status == 0
    at_terminal("y\n")
    said = ledger("forget", NUMBER)
    assert said.status == 0
    lines = said.err.splitlines()
    assert lines[0].endswith(" has 2 messages to this number")
    assert lines[1].startswith("They stay claimed, by a digest, in 2 campaigns: spring, summer.")
    assert lines[3].startswith("Forget this number? [y/N] Forgotten in 2 messages")
    assert ("PostgreSQL keeps deleted rows" in lines[4]) != ledger_path.exists()
    assert rows("SELECT destination FROM sms_message ORDER BY destination") == [(0,), (0,), (int(OTHER.destination),)]
    assert holders([PERSON], "summer") == {UNKNOWN}
    assert ledger("who", NUMBER).status == 1


def test_the_file_and_its_log_do_not_hold_the_number(ledger, sent_to_file, ledger_path, file_store, monkeypatch):
    """A reader keeps the log from being emptied: the status is 1, and the same command completes it later."""
    monkeypatch.setattr(sqlite, "LOG_SECONDS", 0.05)
    sent_to_file([PERSON, OTHER])
    assert held_in(ledger_path) == [True, True]
    with file_store.read() as connection:
        connection.exec_driver_sql("SELECT * FROM sms_message").fetchall()
        said = ledger("forget", NUMBER, "--yes")
    assert (said.status, "another process reads or writes there" in said.err) == (1, True)
    said = ledger("forget", NUMBER)
    assert (said.status, " has 0 messages to this number\n" in said.err) == (0, True)
    assert held_in(ledger_path) == [False, True]
