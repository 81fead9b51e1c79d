from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest
from support.whole import TOKEN

NUMBER = re.compile(r"(?<![\d.])(?:27|0)?(\d{9})(?!\d)")
"""A number of somebody's, however it is written; no part of a fraction or of a longer one."""

OWN_CODE = ("dag_code", "serialized_dag")
"""Tables with the code of DAGs, which Airflow stores and shows: rows that are written in it are there."""
OWN_DATA = {
    ("example_sms_from_dataframe", "overdue_invoices", "return_value"),  # rows that a task of the user's returns
}
"""XComs that hold people, by DAG, task and key."""


class People:
    """Those who were texted: what may stand nowhere. A group's text is the template itself, which is shown as it is.

    :param taken: the accepted messages.
    """

    def __init__(self, taken):
        theirs = [message for message in taken if message.kind == "bulk"]
        self._numbers = {message.destination[-9:] for message in theirs}
        self._texts = {message.content for message in theirs}
        self.count = len(self._numbers)

    def stand_in(self, text):
        """Whether a number of theirs, a text that was made for one of them, or the token is there; not which."""
        numbers = not self._numbers.isdisjoint(NUMBER.findall(text))
        return TOKEN in text or numbers or any(each in text for each in self._texts)


@pytest.fixture(scope="module")
def people(whole):
    return People(whole.taken)


def test_no_log_holds_a_number_a_text_or_the_token(whole, people):
    """Logs of tasks, triggers, the scheduler and the API server name nobody."""
    logs = [path for path in (*whole.home.glob("*.out"), *(whole.home / "logs").rglob("*.log")) if path.is_file()]
    holding = [path.name for path in logs if people.stand_in(path.read_text(errors="replace"))]
    assert (len(logs) > len(whole.states), people.count > 1500) == (True, True)
    assert holding == []


def test_airflows_database_holds_them_only_where_it_is_documented(whole, people):
    """Rendered fields, triggers, task state, events: each table and column, but for those that are said to do so."""
    holding, read = [], 0
    with closing(sqlite3.connect(whole.home / "airflow.db")) as database:
        database.row_factory = sqlite3.Row
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(tables) - set(OWN_CODE)):
            for row in database.execute(f'SELECT * FROM "{table}"'):
                if documented(table, row):
                    continue
                read += 1
                values = [bytes(each).decode(errors="replace") if isinstance(each, bytes) else each for each in row]
                if people.stand_in(json.dumps(values, default=str, ensure_ascii=False)):
                    holding.append((table, row["key"] if table == "xcom" else None))
    assert read > 100
    assert holding == []


def documented(table, row):
    if table == "log":
        # What a user sets a variable to; Airflow 3.3 leaves it out.
        return "variable" in row["event"]
    return table == "xcom" and (row["dag_id"], row["task_id"], row["key"]) in OWN_DATA


def test_pages_and_commands_show_nobody(whole, people):
    """Neither the pages of each campaign, nor what commands print, errors included."""
    assert len(whole.shown) >= 15
    assert [name for name, text in whole.shown.items() if people.stand_in(text)] == []
    assert "has no message to this number" in whole.shown["command who of nobody"]
    assert all("<!doctype html>" in text for name, text in whole.shown.items() if name.startswith("/campaigns"))


def test_no_file_of_airflow_holds_the_token(whole):
    """Nowhere, whatever kind of file it is: also not where a row was deleted."""
    files = [path for path in whole.home.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path.name for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_a_waiting_trigger_holds_neither_token_nor_number(whole, people):
    """What Airflow stores of a sensor while it is deferred."""
    assert (len(whole.triggers) > 0, [row for row in whole.triggers if people.stand_in(row)]) == (True, [])


def test_metrics_name_nobody(whole, people):
    """What leaves Airflow for those who watch it."""
    bodies = [body.decode(errors="replace") for body in whole.exported]
    assert (len(bodies) > 0, [body for body in bodies if people.stand_in(body)]) == (True, [])
