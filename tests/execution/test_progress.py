from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing, suppress
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from support.airflow import run_task
from support.sending import Clock, claimant

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution import progress
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.reporting.row_counts import COUNTS, RowCounts
from airflow_provider_sms.reporting.summary import Sums, summarise
from airflow_provider_sms.service.responses import Balance


def read(path, query):
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


@pytest.fixture
def notes(ledger_path):
    """Give the notes of the tries in the ledger, in the order in which they came to it."""

    def notes():
        query = (
            "SELECT a.*, c.name AS campaign FROM sms_attempt a "
            "JOIN sms_campaign c ON c.id = a.campaign_id ORDER BY a.id"
        )
        rows = read(ledger_path, query)
        return [{**row, **{name: row[name] and json.loads(row[name]) for name in ("figures", "plan")}} for row in rows]

    return notes


def counts(note):
    return {name: note[name] for name in ("state", "total", "done", "not_sent", "invalid")}


# Tasks


def test_the_last_note_is_of_the_end(send, people, notes):
    """What was planned, what came of it, and how fast."""
    rows = people(252, destination=[*(str(27_820_000_000 + n) for n in range(250)), "12", "13"])
    ran = send(rows, campaign="spring", on_invalid="skip")
    (note,) = notes()
    assert counts(note) == {"state": "ended", "total": 250, "done": 250, "not_sent": 0, "invalid": 2}
    assert {name: note[name] for name in ("campaign", "conn_id", "try_number")} == {
        "campaign": "spring",
        "conn_id": "sms_default",
        "try_number": 1,
    }
    assert note["rate"] > 0
    plan = ran.xcoms["plan"]
    del plan["markdown"]
    assert note["plan"] == {**plan, "id": plan["id"].partition("-")[0]}
    assert note["figures"] == ran.summary


def test_what_refuses_a_table_is_noted(send, people, notes):
    """With what was counted and planned until then; where the arguments are refused is no note."""
    for source, options in (
        (people(3, destination=["x", "27820000001", "27820000002"]), {}),
        (people(30), {"limits": {"max_cost": 5}}),
        ("no-such.parquet", {}),
        ("no-such.parquet", {"limits": {"max_rows": "{{ 'x' }}"}}),
    ):
        assert send(source, campaign="c", **options).state == "failed"
    rows, plan, source = notes()
    assert counts(rows) == {"state": "failed", "total": 2, "done": 0, "not_sent": 2, "invalid": 1}
    assert (rows["plan"], rows["rate"]) == (None, None)
    assert (plan["state"], plan["plan"]["to_send"], plan["not_sent"]) == ("failed", 30, 30)
    assert (source["campaign"], source["state"], source["total"], source["not_sent"]) == ("c", "failed", None, None)


def test_a_dry_run_leaves_no_note(send, people, notes):
    """It writes nothing to a ledger that is there."""
    send(people(3), campaign="c")
    before = notes()
    send(people(4), dry_run=True, campaign="c")
    assert notes() == before


def test_a_group_is_one_message(sms_default, ledger_path, notes, metrics):
    """It has no plan, and counts once: the service alone knows who is in a group."""
    run_task(lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"], campaign="c"))
    (note,) = notes()
    assert counts(note) == {"state": "ended", "total": 1, "done": 1, "not_sent": 0, "invalid": 0}
    assert (note["figures"]["accepted"], note["plan"], metrics.counts()) == (1, None, {"sms.accepted": 1})
    assert (len(metrics.values("sms.request_duration")), metrics.values("sms.balance")) == (1, [100_000.0, 99_995.0])


def test_nobody_is_in_the_notes(send, people, sandbox, ledger_path):
    """No number, text or token, whatever came of them; the tables of claims are where the numbers are."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    numbers = [str(27_820_000_000 + n) for n in range(300)]
    numbers[7], numbers[9] = "no-number", numbers[8]
    send(people(300, destination=numbers), "Secret words for {first_name}", on_invalid="skip", concurrency=1)
    for table, rows in (("sms_attempt", 1), ("sms_balance", 2)):
        found = read(ledger_path, f"SELECT * FROM {table}")
        told = json.dumps(found)
        assert len(found) >= rows
        # As long as it is: the digits of an identifier or a time have any four in a row now and then.
        secrets = ("27820000", "no-number", "Secret", "words", "Name", "sandbox-token")
        assert not any(secret in told for secret in secrets)
    assert "27820000" in json.dumps(read(ledger_path, "SELECT destination FROM sms_message"))


# Metrics


def test_the_counters_add_up_to_the_summary(send, people, sandbox, metrics):
    """Every count of the summary is a counter, tagged with DAG, task and connection, and every request has its time."""
    numbers = [str(27_820_000_000 + n) for n in range(450)]
    numbers[7], numbers[9] = "12", numbers[8]
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}, {"kind": "status", "status": 400}])
    ran = send(people(450, destination=numbers), "Hi", on_invalid="skip", concurrency=1)
    found = {"accepted": 100, "unknown": 100, "not_sent": 248, "invalid": 1, "duplicate": 1}
    assert {name: ran.summary[name] for name in COUNTS if ran.summary[name]} == found
    assert (ran.state, metrics.counts()) == ("failed", {f"sms.{name}": count for name, count in found.items()})
    assert len(metrics.values("sms.request_duration")) == ran.summary["requests"] + 1 == 3
    assert all(milliseconds > 0 for milliseconds in metrics.values("sms.request_duration"))
    assert metrics.values("sms.balance")
    assert {tuple(told.tags) for told in metrics.told} == {("dag_id", "task_id", "conn_id"), ("conn_id",)}
    assert {told.name for told in metrics.told if len(told.tags) == 1} == {"sms.balance"}


# One attempt


def free(rows):
    return RowCounts(not_sent=rows)


def end(told, state, counts):
    told.summary = counts and summarise("spring", counts, Sums())
    with suppress(ZeroDivisionError), told.until_ended():
        if state == "failed":
            raise ZeroDivisionError


@pytest.fixture
def clock():
    return Clock(100.0)


@pytest.fixture
def told(ledger_path, clock):
    """Reports an attempt that has entered the ledger."""
    with closing(open_sqlite(ledger_path)) as store:
        context = {"ti": SimpleNamespace(dag_id="d", task_id="t")}
        yield Progress(context, "sms_default", store, register(store, claimant()), "spring", clock=clock)


@pytest.fixture
def sender(told):
    """What the attempt has sent, as its sender counts it for others to see."""
    sender = SimpleNamespace(taken=0, stop_conditions=SimpleNamespace(paused=None, balance=None))
    told.sender = sender
    return sender


@pytest.fixture
def after(told, clock, sender):
    """Let seconds pass while the attempt sends."""

    def after(seconds=10.0, *, taken=None, paused=False):
        clock.now += seconds
        sender.taken = sender.taken if taken is None else taken
        sender.stop_conditions.paused = "a pause" if paused else None
        told.beat()

    return after


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records if record.module == "progress"]


def test_a_note_says_how_far_sending_is(told, notes, after):
    """The rate is that of this process since it began; before the service has taken anything there is none."""
    told.begin(RowCounts(accepted=60, duplicate=15, unknown=25, not_sent=900, invalid=7), 900)
    assert (notes()[0]["done"], notes()[0]["rate"]) == (100, None)
    after(taken=45)
    (note,) = notes()
    assert counts(note) == {"state": "sending", "total": 1000, "done": 145, "not_sent": None, "invalid": None}
    assert (note["rate"], note["figures"]["accepted"], note["figures"]["duplicate"]) == (4.5, 60, 15)


def test_after_a_note_that_failed_the_next_one_is_tried(told, notes, after, monkeypatch, caplog):
    """A database that is locked for a moment costs no note but its own, and is logged once."""
    with monkeypatch.context() as patched:
        patched.setattr(progress, "note_progress", Mock(side_effect=LedgerError("locked")))
        told.begin(free(100), 100)
        after()
    assert (caplog.text.count("does not take notes"), notes()) == (1, [])
    after(taken=1)
    assert notes()[0]["done"] == 1


def test_a_pause_leaves_the_rate_as_it_was(told, notes, after):
    """How fast it was until then; meanwhile it would only fall."""
    told.begin(free(1000), 1000)
    after(taken=50)
    after(1000.0, paused=True)
    assert (notes()[0]["state"], notes()[0]["rate"]) == ("paused", 5.0)


def test_an_interruption_gets_through(told, monkeypatch):
    """What Airflow raises to end a task, such as its timeout, is no failure of the ledger."""
    monkeypatch.setattr(told._store, "clock", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        told.note("checking")


def test_the_log_gets_a_line_every_few_seconds_if_anything_has_changed(told, after, lines, notes):
    """Done, of how many, how fast, and the time left; a service that is down takes one line, and is noted as often."""
    at = []
    told.begin(free(10), 10)
    for taken, paused in [(0, False), (0, False), (5, False), (5, False), (5, True), (5, True)]:
        after(2.5, paused=paused)
        after(2.5, taken=taken, paused=paused)
        at.append(notes()[0]["updated_at"])
    assert lines() == [
        "0 of 10 rows done, 0 a second, no estimate yet",
        "5 of 10 rows done, 0 a second, 15 s left",
        "5 of 10 rows done, paused",
    ]
    assert len(set(at)) == 6


def test_what_is_accepted_is_counted_while_a_try_sends(told, after, metrics):
    """Each beat tells what this process has sent since the last one; the end tells the rest."""
    told.begin(RowCounts(accepted=40, not_sent=260), 260)
    for taken in (100, 100, 250):
        after(0.5, taken=taken)
    assert metrics.values("sms.accepted") == [100, 150]
    end(told, "ended", RowCounts(accepted=290, duplicate=2, invalid=3, not_sent=5))
    assert metrics.counts() == {"sms.accepted": 250, "sms.duplicate": 2, "sms.invalid": 3, "sms.not_sent": 5}


def test_a_process_that_ends_before_it_sends_counts_nothing_as_accepted(told, metrics):
    """The one before its wait has counted that."""
    end(told, "failed", RowCounts(accepted=60, unknown=40))
    assert metrics.counts() == {"sms.unknown": 40}


def test_the_balance_is_told_when_it_changes(told, after, metrics, sender):
    """It is a gauge; a post-paid account, whatever figure it states, has none."""
    told.begin(free(10), 10)
    for post_paid in (True, False):
        told.balance_read(Balance(Decimal(6), post_paid))
        for balance in (None, 5.0, 5.0, 4.0):
            sender.stop_conditions.balance = balance
            after(0.5)
    assert metrics.values("sms.balance") == [6.0, 5.0, 4.0]
