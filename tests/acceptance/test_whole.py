"""Every example and some DAGs of the tests have run once: how they ended, and that nobody is named anywhere."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from support.whole import BOUGHT, NEEDED, ON_CALL, TOKEN, run_all

pytestmark = pytest.mark.slow
NUMBER = re.compile(r"(?<![\d.])(?:27|0)?(\d{9})(?!\d)")
"""A number of somebody's, however it is written; no part of a fraction or of a longer one."""

OWN_CODE = ("dag_code", "serialized_dag")
"""Tables with the code of DAGs, which Airflow stores and shows: rows that are written in it are there."""
OWN_DATA = {
    ("example_sms_from_dataframe", "overdue_invoices", "return_value"),  # rows that a task of the user's returns
}
"""XComs that hold people, by DAG, task and key."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give what was seen of a real Airflow that has run everything once."""
    return run_all(tmp_path_factory.mktemp("whole"))


def test_every_example_ends_as_it_says(whole):
    """All succeed, but for the one that shows what happens when a task fails."""
    assert {dag_id for dag_id, state in whole.states.items() if state != "success"} == {
        "example_sms_alert",
        "example_sms_approval changed",
    }
    assert len(whole.taken) > 1500


def test_a_plan_is_sent_once_it_is_approved_and_no_other_plan_is(whole):
    """Nothing is sent before a person answers, or once refused or changed; a plan below the bound needs no answer."""
    assert whole.unapproved == {"once": 0, "refused": 0, "changed": 0}
    assert {run: sent > 1000 for run, sent in whole.approved.items() if sent} == {"once": True, "cheap": True}


@pytest.mark.parametrize(
    ("says", "text"),
    [
        ("failed", r"Airflow: example_sms_alert\.count_invoices failed, try .*, run once"),
        ("missed", r"Airflow: DAG waits missed its deadline of .*"),
    ],
)
def test_who_is_on_call_is_texted(whole, says, text):
    """The notifier in a task's process and in the triggerer, with numbers from a variable in Airflow's database."""
    sent = ((each.destination, each.content) for each in whole.taken if "Airflow" in each.content)
    alerts = {number: alert for number, alert in sent if says in alert}
    assert set(alerts) == set(ON_CALL)
    assert [alert for alert in alerts.values() if not re.fullmatch(text, alert, re.DOTALL)] == []


def test_a_sensor_outlives_its_triggerer(whole):
    """Deferred in a triggerer that is killed, it is looked after by another until there is credit: the run waits."""
    assert whole.states["waits"] == "success"


def test_assets_start_campaigns_and_tell_what_was_sent(whole):
    """An update triggers a DAG; who is scheduled by a send's own event knows its counts, and the credit left."""
    assert whole.states["example_sms_on_update"] == "success"
    assert whole.run_type in ("asset_triggered", "dataset_triggered")
    assert (whole.told["rows"], whole.told["accepted"], whole.told["unknown"]) == (30, 30, 0)
    # Others send at the same time.
    assert NEEDED < whole.told["remaining_balance"] <= BOUGHT - 30


def test_a_mapped_task_has_its_name_and_its_report(whole):
    """By the template of the user's; the report has a row for each person, at the path that the task was given."""
    assert (whole.label, pq.read_table(whole.report).num_rows) == ("people.parquet", 30)


def test_metrics_come_from_workers_and_from_the_triggerer(whole):
    """By Airflow's own exporter, with their tags; the balance is there while a sensor is deferred."""
    exported = b"".join(whole.exported)
    names = [f"airflow.sms.{name}" for name in ("accepted", "invalid", "request_duration", "balance")]
    assert [word for word in (*names, "conn_id", "sms_default", "waits") if word.encode() not in exported] == []


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
