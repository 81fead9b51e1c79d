from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest
from support.airflow import run_task
from support.later import later
from support.sending import Clock, claimant
from support.windows import OpensLater

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution import ledger_progress
from airflow_provider_sms.execution.ledger_progress import LedgerProgress
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.reporting.summary import summarise
from airflow_provider_sms.sending.counts import SendCounts


def read(path, query):
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


@pytest.fixture
def notes(ledger_path):
    """Give the notes of the tries in the ledger, in the order in which they came to it."""

    def notes():
        query = (
            "SELECT p.*, c.name AS campaign, l.try_number FROM sms_progress p "
            "JOIN sms_campaign c ON c.id = p.campaign_id JOIN sms_claimant l ON l.id = p.claimant_id ORDER BY l.id"
        )
        rows = read(ledger_path, query)
        return [{**row, **{name: row[name] and json.loads(row[name]) for name in ("figures", "plan")}} for row in rows]

    return notes


def counts(note):
    return {name: note[name] for name in ("state", "total", "done", "not_sent", "invalid")}


# Tasks


def told_of(note):
    """Count the messages of which the service has named the network."""
    return sum(line["quantity"] for line in note["figures"]["cost_breakdown"].values())


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


def test_a_try_that_fails_says_so(send, people, sandbox, notes):
    """Each try has a note of its own, with what it left."""
    sandbox.state.set_balance(150)
    assert send(people(300), concurrency=1, retries=1, campaign="c").state == "failed"
    first, second = notes()
    assert (first["try_number"], second["try_number"]) == (1, 2)
    assert counts(first) == {"state": "failed", "total": 300, "done": 100, "not_sent": 200, "invalid": 0}
    assert (first["figures"]["accepted"], first["figures"]["already_sent"]) == (100, 0)
    assert counts(second) == counts(first)
    assert (second["figures"]["accepted"], second["figures"]["already_sent"]) == (0, 100)


def test_a_table_that_is_refused_is_noted(send, people, notes):
    """Nobody was texted, and which rows cannot be is counted."""
    assert send(people(3, destination=["x", "27820000001", "27820000002"])).state == "failed"
    (note,) = notes()
    assert counts(note) == {"state": "failed", "total": 2, "done": 0, "not_sent": 2, "invalid": 1}
    assert (note["plan"], note["rate"]) == (None, None)


def test_a_plan_beyond_a_limit_is_noted(send, people, notes):
    """Who looks sees what would have been sent."""
    send(people(30), limits={"max_cost": 5})
    (note,) = notes()
    assert (note["state"], note["plan"]["to_send"], note["not_sent"]) == ("failed", 30, 30)


def test_a_report_that_cannot_be_written_fails_the_try(send, people, tmp_path, notes):
    """What the ledger says is what Airflow says."""
    (tmp_path / "reports").write_text("a file where a folder should be")
    ran = send(people(3), report=str(tmp_path / "reports" / "of.parquet"))
    assert (ran.state, notes()[0]["state"]) == ("failed", "failed")


def test_arguments_that_are_refused_are_noted(send, people, notes):
    """What ends a try before it has counted anything is its end, too; where no campaign is named there is no note."""
    send(people(3), limits={"max_rows": "{{ 'x' }}"}, campaign="c")
    send(people(3), campaign="{{ ' ' }}")
    (note,) = notes()
    assert (note["campaign"], note["state"], note["total"]) == ("c", "failed", None)


def test_a_dry_run_leaves_no_note(send, people, ledger_path, notes):
    """It makes no ledger, and writes nothing to one that is there."""
    send(people(3), dry_run=True)
    assert not ledger_path.exists()
    send(people(3), campaign="c")
    before = notes()
    send(people(4), dry_run=True, campaign="c")
    assert notes() == before


def test_a_group_is_one_message(sms_default, ledger_path, notes):
    """It has no plan."""
    run_task(lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"], campaign="c"))
    (note,) = notes()
    assert counts(note) == {"state": "ended", "total": 1, "done": 1, "not_sent": 0, "invalid": 0}
    assert (note["figures"]["accepted"], note["plan"]) == (1, None)


def test_a_wait_is_the_last_that_its_part_says(send, people, sandbox, notes):
    """What it waits for, and how far it has come; the part after it has a note of its own."""
    sandbox.state.set_balance(250)
    looks = lambda: sum(request.operation == "balance" for request in sandbox.state.requests)  # noqa: E731
    with later(lambda: sandbox.state.set_balance(1000), lambda: looks() > 2):
        ran = send(people(400), on_low_balance="wait", cost_per_part=0.5, concurrency=1)
    waited, went_on = notes()
    assert ran.state == "success"
    assert counts(waited) == {"state": "waiting for credit", "total": 400, "done": 200, "not_sent": 0, "invalid": 0}
    assert (waited["figures"]["balance_needed"], told_of(waited)) == (100.0, 200)
    assert counts(went_on) == {"state": "ended", "total": 400, "done": 400, "not_sent": 0, "invalid": 0}
    assert (went_on["figures"]["accepted"], told_of(went_on)) == (400, 400)


@pytest.mark.slow
def test_a_wait_before_the_first_text_is_noted(send, people, notes):
    """With the plan, and the hour at which it ends."""
    hours = OpensLater(seconds=3)
    ran = send(people(5), send_window=hours)
    waited, went_on = notes()
    assert (ran.state, went_on["state"]) == ("success", "ended")
    assert counts(waited) == {"state": "waiting for hours", "total": 5, "done": None, "not_sent": None, "invalid": 0}
    assert (waited["figures"], waited["plan"]["to_send"]) == ({"until": hours.opening.isoformat()}, 5)


@pytest.mark.slow
def test_a_ledger_that_takes_no_notes_stops_nothing(send, people, ledger_path, witnessed):
    """Everybody is texted, the task succeeds, and the log says once that no notes follow.

    The first note of progress is the exception: it keeps the campaign from a purge.
    """
    open_sqlite(ledger_path).close()
    with closing(sqlite3.connect(ledger_path)) as connection:
        refuse = "BEGIN SELECT RAISE(ABORT, 'no notes about 27820000001'); END"
        connection.execute(f"CREATE TRIGGER no_notes BEFORE UPDATE ON sms_progress {refuse}")
    ran = send(people(250))
    assert (ran.state, len(witnessed()), set(witnessed().values())) == ("success", 250, {1})
    told = "The ledger does not take notes of the progress now: The ledger cannot be written to"
    assert ran.log.count(told) == 1
    assert "27820000001" not in ran.log


def test_nobody_is_in_the_notes(send, people, sandbox, ledger_path):
    """No number, text or token, whatever came of them; the tables of claims are where the numbers are."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    numbers = [str(27_820_000_000 + n) for n in range(300)]
    numbers[7], numbers[9] = "no-number", numbers[8]
    send(people(300, destination=numbers), "Secret words for {first_name}", on_invalid="skip", concurrency=1)
    for table, rows in (("sms_progress", 1), ("sms_balance", 2)):
        found = read(ledger_path, f"SELECT * FROM {table}")
        told = json.dumps(found)
        assert len(found) >= rows
        # As long as it is: the digits of an identifier or a time have any four in a row now and then.
        secrets = ("27820000", "no-number", "Secret", "words", "Name", "sandbox-token")
        assert not any(secret in told for secret in secrets)
    assert "27820000" in json.dumps(read(ledger_path, "SELECT destination FROM sms_message"))


# One try


@pytest.fixture
def clock():
    return Clock(100.0)


@pytest.fixture
def told(ledger_path, clock):
    """What a try that has entered tells the ledger."""
    with closing(open_sqlite(ledger_path)) as store:
        yield LedgerProgress(store, register(store, claimant()), "spring", "sms_default", clock)


def test_a_note_says_how_far_sending_is(told, notes, clock):
    """The rate is that since sending began, without what was done before; before anything is done there is none."""
    tally = SendCounts(accepted=100)
    told.sending(tally, 1000, paused=False)
    assert (notes()[0]["done"], notes()[0]["rate"]) == (100, None)
    clock.now += 10.0
    tally.accepted, tally.unknown, tally.not_sent, tally.duplicate, tally.requests = 110, 20, 5, 15, 3
    tally.cost_breakdown["MTN"] = (Decimal("9.5"), 110)
    told.sending(tally, 1000, paused=False)
    (note,) = notes()
    assert counts(note) == {"state": "sending", "total": 1000, "done": 145, "not_sent": 5, "invalid": None}
    assert note["rate"] == 4.5
    assert {name: value for name, value in note["figures"].items() if isinstance(value, int)} == {
        "accepted": 110,
        "unknown": 20,
        "duplicate": 15,
        "already_sent": 0,
        "requests": 3,
    }
    assert note["figures"]["cost_breakdown"] == {"MTN": {"cost": 9.5, "quantity": 110}}


def test_after_a_note_that_failed_it_rests_and_then_goes_on(told, notes, clock, monkeypatch, caplog):
    """A database that is locked for a moment does not cost the notes of hours; how a try ended is told in any case."""
    write, tries = ledger_progress.note_progress, []

    def failing(*arguments, **named):
        tries.append(clock.now)
        raise LedgerError("locked")

    monkeypatch.setattr(ledger_progress, "note_progress", failing)
    for _ in range(3):
        told.sending(SendCounts(accepted=1), 100, paused=False)
        clock.now += 40.0
    assert (len(tries), caplog.text.count("does not take notes")) == (2, 1)
    monkeypatch.setattr(ledger_progress, "note_progress", write)
    told.ended("ended", summarise("spring", 100, 0, SendCounts(accepted=100)))
    assert notes()[0]["state"] == "ended"


def test_what_the_service_left_out_is_not_for_a_later_try(told, notes):
    """It is held by the request that it was left out of, so nobody is asked to clear a task for it."""
    tally = SendCounts(accepted=95, not_sent=5, partial=3)
    told.sending(tally, 100, paused=False)
    assert (notes()[0]["done"], notes()[0]["not_sent"]) == (98, 2)
    told.ended("ended", summarise("spring", 100, 0, tally))
    assert (notes()[0]["done"], notes()[0]["not_sent"]) == (98, 2)


def test_what_the_service_left_out_before_a_wait_is_not_for_a_later_try_either(told, notes):
    """The leg after the wait ended before its send: five of the 105 belong to a request that the service took."""
    tally = SendCounts(accepted=95, not_sent=105, partial=5)
    told.ended("failed", summarise("spring", 200, 0, tally), left_out=5)
    assert (notes()[0]["done"], notes()[0]["not_sent"]) == (100, 100)


def test_a_try_that_came_to_look_at_nothing_notes_no_counts(told, notes):
    """Nothing is not known; it is not none."""
    told.ended("failed", summarise("spring", 0, 0, SendCounts()))
    assert (notes()[0]["state"], notes()[0]["total"], notes()[0]["not_sent"]) == ("failed", None, None)


def test_a_pause_leaves_the_rate_as_it_was(told, notes, clock):
    """How fast it was until then; meanwhile it would only fall."""
    tally = SendCounts()
    told.sending(tally, 1000, paused=False)
    clock.now += 10.0
    tally.accepted = 50
    told.sending(tally, 1000, paused=False)
    clock.now += 1000.0
    told.sending(tally, 1000, paused=True)
    assert (notes()[0]["state"], notes()[0]["rate"]) == ("paused", 5.0)


def test_an_interruption_gets_through(told, monkeypatch):
    """What Airflow raises to end a task, such as its timeout, is no failure of the ledger."""

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(told._store, "clock", interrupt)
    with pytest.raises(KeyboardInterrupt):
        told.note("checking")
