from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest
from sqlalchemy import create_engine, inspect, text
from support.airflow import run_task
from support.later import later
from support.sending import Clock, claimant
from support.windows import OpensLater

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution import ledger_progress
from airflow_provider_sms.execution.ledger_progress import BalanceNotes, LedgerProgress
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.reporting.summary import summarise
from airflow_provider_sms.sending.counts import SendCounts
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
            "SELECT p.*, c.name AS campaign, l.try_number FROM sms_progress p "
            "JOIN sms_campaign c ON c.id = p.campaign_id JOIN sms_claimant l ON l.id = p.claimant_id ORDER BY l.id"
        )
        rows = read(ledger_path, query)
        return [{**row, **{name: row[name] and json.loads(row[name]) for name in ("figures", "plan")}} for row in rows]

    return notes


@pytest.fixture
def balances(ledger_path):
    """Give the balances in the ledger, in the order in which they were seen."""
    return lambda: [row["amount"] for row in read(ledger_path, "SELECT amount FROM sms_balance ORDER BY id")]


def counts(note):
    return {name: note[name] for name in ("state", "total", "done", "not_sent", "invalid")}


# Tasks


def told_of(note):
    """Count the messages of which the service has named the network."""
    return sum(line["quantity"] for line in note["figures"]["cost_breakdown"].values())


def test_the_last_note_is_of_the_end(send, people, notes, balances):
    """What was planned, what came of it, and how fast; and what the balance was before and after."""
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
    assert list(map(float, (balances()[0], balances()[-1]))) == [100_000, ran.summary["remaining_balance"]]


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


def test_a_dry_run_leaves_no_note(send, people, ledger_path, notes, balances):
    """It makes no ledger, and writes nothing to one that is there."""
    send(people(3), dry_run=True)
    assert not ledger_path.exists()
    send(people(3), campaign="c")
    before = (notes(), balances())
    send(people(4), dry_run=True, campaign="c")
    assert (notes(), balances()) == before


def test_a_group_is_one_message(sms_default, ledger_path, notes, balances):
    """Its balance is the one that the answer told."""
    run_task(lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"], campaign="c"))
    (note,) = notes()
    assert counts(note) == {"state": "ended", "total": 1, "done": 1, "not_sent": 0, "invalid": 0}
    assert (note["figures"]["accepted"], note["plan"], len(balances())) == (1, None, 1)


def test_a_wait_is_the_last_that_its_part_says(send, people, sandbox, notes, balances):
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
    # What the answers to the first part said is of before the top-up, and does not come again after it.
    seen = list(map(float, balances()))
    topped_up = seen.index(1000)
    assert (seen[0], seen[topped_up - 1], seen[-1]) == (250, 50, 800)
    assert min(seen[topped_up:]) == 800


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
@pytest.mark.parametrize(
    ("table", "statement"), [("sms_progress", "UPDATE"), ("sms_balance", "INSERT"), ("sms_balance", "UPDATE")]
)
def test_a_ledger_that_takes_no_notes_stops_nothing(send, people, ledger_path, witnessed, table, statement):
    """Everybody is texted, the task succeeds, and the log says once that no notes follow.

    The first note of progress is the exception: it keeps the campaign from a purge.
    """
    open_sqlite(ledger_path).close()
    with closing(sqlite3.connect(ledger_path)) as connection:
        refuse = "BEGIN SELECT RAISE(ABORT, 'no notes about 27820000001'); END"
        connection.execute(f"CREATE TRIGGER no_notes BEFORE {statement} ON {table} {refuse}")
    ran = send(people(250))
    assert (ran.state, len(witnessed()), set(witnessed().values())) == ("success", 250, {1})
    told = "The ledger does not take notes of the progress now: The ledger cannot be written to"
    assert ran.log.count(told) == (0 if (table, statement) == ("sms_balance", "UPDATE") else 1)
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


def test_balances_of_answers_are_recorded_once_a_minute(told, clock, balances):
    """The first one, then one a minute, and the last one."""
    tally = SendCounts()
    told.sending(tally, 1000, paused=False)
    for second in range(100):
        clock.now = 100.0 + second
        tally.remaining_balance = Decimal(1000 - second)
        told.beat()
    told.beat(last=True)
    told.beat(last=True)
    assert balances() == ["1000", "940", "901"]


def test_what_answers_said_before_a_wait_is_not_the_balance_now(told, balances):
    """A part that goes on has the answers of the earlier one; a new answer counts, also where it says the same."""
    tally = SendCounts(remaining_balance=Decimal(0))
    told.saw(Balance(Decimal(100), post_paid=False))
    told.sending(tally, 10, paused=False)
    told.beat(last=True)
    assert balances() == ["100"]
    tally.remaining_balance = Decimal("0.0")
    told.beat(last=True)
    assert balances() == ["100", "0.0"]


@pytest.mark.parametrize(
    ("seen", "recorded"), [(None, [None]), (True, [None]), (False, ["1000000"])], ids=["unread", "post", "pre"]
)
def test_a_post_paid_account_has_no_balance(told, balances, seen, recorded):
    """Its answers say 1000000; so may those of another account, where the look at it has said so."""
    if seen is not None:
        told.saw(Balance(Decimal(1_000_000), post_paid=seen))
    tally = SendCounts()
    told.sending(tally, 10, paused=False)
    tally.remaining_balance = Decimal(1_000_000)
    told.beat()
    assert balances() == recorded


def test_an_interruption_gets_through(told, monkeypatch):
    """What Airflow raises to end a task, such as its timeout, is no failure of the ledger."""

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(told._store, "clock", interrupt)
    with pytest.raises(KeyboardInterrupt):
        told.note("checking")


# Balances, recorded for no attempt


@pytest.fixture
def balance_notes(airflow_home, ledger_path, clock):
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


def test_a_balance_is_recorded_in_the_ledger_of_the_tasks(made, balance_notes, ledger_path):
    """With its connection, and as null where the account is post-paid."""
    balance_notes.record(Decimal("99.5"))
    balance_notes.record(None)
    assert recorded(ledger_path) == [("sms_default", "99.5"), ("sms_default", None)]


def test_no_ledger_is_made(balance_notes, ledger_path, caplog):
    """Where nothing was sent yet nothing is recorded, and nobody is bothered with that; later it is."""
    balance_notes.record(Decimal(5))
    assert not ledger_path.exists()
    assert caplog.text == ""
    open_ledger(None).close()
    balance_notes.record(Decimal(5))
    assert recorded(ledger_path) == [("sms_default", "5")]


def test_no_ledger_is_made_on_a_server(server, balance_notes):
    """A database without a ledger stays without one; one that has it gets the balance."""
    balance_notes.record(Decimal(5))
    assert inspect(server).get_table_names() == []
    open_ledger(None).close()
    balance_notes.record(Decimal(5))
    assert server.execute(text("SELECT conn_id, amount FROM sms_balance")).fetchall() == [("sms_default", "5")]


def test_the_ledger_is_opened_for_what_is_new(made, balance_notes, ledger_path, clock, monkeypatch):
    """A sensor that looks each minute opens it when the balance has changed, or an hour has gone by."""
    opened = []

    def count(*arguments, **options):
        opened.append(clock.now)
        return balance_notes_open(*arguments, **options)

    balance_notes_open = ledger_progress.open_existing_ledger
    monkeypatch.setattr(ledger_progress, "open_existing_ledger", count)
    for minute in range(130):
        clock.now = 60.0 * minute
        balance_notes.record(Decimal(5 if minute < 125 else 6))
    assert opened == [0.0, 61 * 60.0, 122 * 60.0, 125 * 60.0]


@pytest.mark.parametrize("wrong", ["a folder", "no database", "no such connection"])
def test_a_ledger_that_cannot_be_opened_is_left_alone(balance_notes, ledger_path, monkeypatch, caplog, wrong):
    """It is logged once, and not tried again in the same process."""
    if wrong == "no such connection":
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "nowhere")
    elif wrong == "no database":
        ledger_path.write_text("not a database, but long enough to be one" * 10)
    else:
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", str(ledger_path / "none.db"))
        ledger_path.mkdir()
    for _ in range(2):
        balance_notes.record(Decimal(5))
    assert caplog.text.count("Balances are not recorded in the ledger: ") == (wrong != "a folder")


def test_an_interruption_gets_through_the_record_of_a_balance(made, balance_notes, monkeypatch):
    """What Airflow raises to end a task, such as its timeout, is no failure of the ledger."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_progress, "open_existing_ledger", interrupt)
    with pytest.raises(KeyboardInterrupt):
        balance_notes.record(Decimal(5))
