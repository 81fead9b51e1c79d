from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from contextlib import closing, nullcontext

import pytest
from sqlalchemy import create_engine, text
from support.airflow import run_task
from support.keys import request_of
from support.later import later
from support.versions import KEEPS_TASK_STATE

from airflow_provider_sms.exceptions import InputError, LedgerError, StoppedError
from airflow_provider_sms.execution import enter
from airflow_provider_sms.execution.enter import note_ledger, refuse_without_trace
from airflow_provider_sms.ledger.attempts import adopt, note_progress, register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, Claimant, Outcome
from airflow_provider_sms.ledger.purge import old_campaigns, purge
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

needs_task_state = pytest.mark.skipif(
    not KEEPS_TASK_STATE,
    reason="Airflow before 3.3 has no task state store; without one the try number decides, as other tests here hold",
)


class State:
    """Airflow's task state store, as a task sees it."""

    def __init__(self, **kept):
        self.kept = kept

    def get(self, key):
        return self.kept.get(key)

    def set(self, key, value, *, retention):
        self.kept[key] = value


class Superseded(State):
    def set(self, key, value, *, retention):
        raise RuntimeError("404")


def refuse(context, store, who, *, resumed=False):
    refuse_without_trace(context, store, who, resumed=resumed, ledger_conn_id=None)


def claims(store, who, count, *, campaign="c"):
    """Enter the ledger as an attempt, and claim some requests."""
    ledger = CampaignLedger(store, campaign, who)
    for n in range(count):
        (claim,) = ledger.commit(
            chunks=[request_of([bytes([who.try_number, n]) * 8], ["27820000001"])], claim_seconds=60
        )
        if claim.request_id is not None:
            ledger.commit(outcomes=[Outcome(claim.request_id, NOT_SENT if n % 2 else ACCEPTED)])


def who(try_number, **changes):
    fields = {"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1, "host": "h", "pid": 1, **changes}
    return Claimant(try_number=try_number, **fields)


@pytest.fixture
def store(tmp_path):
    with closing(open_sqlite(tmp_path / "ledger.db")) as store:
        yield store


def test_a_ledger_that_was_lost_between_tries_stops_the_task(sms_default, ledger_path, people, sandbox, witnessed):
    """The retry finds a new, empty ledger, and texts nobody a second time; the error says how to go on."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after", "times": 2}])

    def lose(context):
        for file in ledger_path.parent.glob("ledger.db*"):
            file.unlink()

    source = people(200)
    ran = run_task(
        lambda: BulkSmsOperator(
            task_id="send",
            source=source,
            message="Hi",
            concurrency=1,
            on_unknown="resend",
            on_retry_callback=lose,
        ),
        retries=3,
    )
    assert (ran.state, ran.tries, set(witnessed().values())) == ("failed", 2, {1, 2})
    assert [request.operation for request in sandbox.state.requests].count("bulk") == 3
    assert "has no trace of an earlier one" in ran.log
    assert "airflow-sms adopt dag_" in ran.log
    assert ran.xcoms == {}


@needs_task_state
def test_each_try_notes_its_ledger_in_airflow(sms_default, ledger_path, people):
    """The note survives retries and clears, and holds no number or text."""
    from airflow.models.task_state_store import TaskStateStoreModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    ran = run_task(lambda: BulkSmsOperator(task_id="send", source=people(3), message="Hi"))
    with create_session() as session:
        rows = session.scalars(select(TaskStateStoreModel).filter_by(run_id=ran.run_id, key="sms_ledger")).all()
        assert [(row.key, str(ledger_path) in row.value) for row in rows] == [("sms_ledger", True)]


def test_a_first_try_needs_no_trace(store):
    """Nobody was texted before the first try."""
    refuse({"task_state_store": State()}, store, who(1))
    refuse({}, store, who(1))


def test_a_later_try_whose_earlier_ones_never_came_to_a_ledger_goes_on(store, monkeypatch):
    """Where Airflow keeps notes for as long as the run, no note means that no try could send."""
    monkeypatch.setattr("airflow.__version__", "3.3.2")
    refuse({"task_state_store": State()}, store, who(3))


def test_a_later_try_with_a_trace_goes_on(store):
    """The ledger that earlier tries used is the right one, with and without notes."""
    register(store, who(1))
    refuse({"task_state_store": State(sms_ledger="x")}, store, who(2))
    refuse({}, store, who(2))


@pytest.mark.parametrize(
    "context", [{"task_state_store": State(sms_ledger="PostgreSQL at db")}, {}], ids=["note", "none"]
)
def test_a_later_try_without_a_trace_is_refused(store, context):
    """By the note where there is one, else by the try number; another task's trace is none."""
    register(store, who(1, task_id="other"))
    with pytest.raises(InputError, match=r"attempt 2.*Nothing was sent.*airflow-sms adopt d t r$") as raised:
        refuse(context, store, who(2))
    assert ("PostgreSQL at db" in str(raised.value)) == bool(context)


def test_a_mapped_task_is_named_by_its_index(store):
    """The way out names the one task instance."""
    with pytest.raises(InputError, match=r"airflow-sms adopt d t r --map-index 4$"):
        refuse({}, store, who(2, map_index=4))


def test_notes_that_airflow_clears_on_success_prove_nothing(store, monkeypatch):
    """Where notes go when a task succeeds, the try number counts again."""
    monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", "True")
    with pytest.raises(InputError, match="no trace"):
        refuse({"task_state_store": State()}, store, who(2))


@needs_task_state
def test_a_try_that_was_superseded_does_not_send(store):
    """Airflow takes no note from a try that another one has replaced."""
    with pytest.raises(StoppedError, match="This attempt sent nothing"):
        note_ledger({"task_state_store": Superseded()}, store)


def test_every_try_leaves_its_trace_before_it_sends(send, people, ledger_path):
    """A task that fails on its table has entered the ledger, so that its next try is not refused."""
    ran = send(people(2, destination=["x", "y"]))
    with closing(sqlite3.connect(ledger_path)) as connection:
        rows = connection.execute("SELECT task_id, try_number FROM sms_attempt").fetchall()
    assert (ran.state, rows) == ("failed", [("send", 1)])


@pytest.mark.parametrize("context", [{"task_state_store": State()}, {}], ids=["store", "none"])
def test_a_leg_after_a_wait_must_find_the_leg_before_it(store, context):
    """On every version and in a first try: what another try left is no trace of it; an adoption is."""
    register(store, who(2))
    with pytest.raises(InputError, match=r"^This is attempt 3 after a wait, and .* has no trace"):
        refuse(context, store, who(3), resumed=True)
    adopt(store, who(0))
    refuse(context, store, who(3), resumed=True)
    register(store, who(1, run_id="other"))
    refuse(context, store, who(1, run_id="other"), resumed=True)


def test_a_leg_whose_campaign_was_purged_is_refused(store):
    """Nobody of those whom it texted before it waited is texted again."""
    claims(store, who(1), 3)
    later = store.clock() + 1
    purge(store, old_campaigns(store, later), later)
    with pytest.raises(InputError, match="was the campaign purged"):
        refuse({}, store, who(1), resumed=True)


def purge_years_later(path):
    """Date back all that earlier legs and attempts wrote, as if the wait had taken years; purge as every night."""
    earlier = "(SELECT max(id) FROM sms_attempt)"
    with closing(open_sqlite(path)) as store:
        with store.write(1) as connection:
            for table, column, where in (
                ("sms_campaign", "created_at", ""),
                ("sms_request", "claimed_at", ""),
                ("sms_request", "deadline", ""),
                ("sms_request", "finished_at", ""),
                ("sms_attempt", "updated_at", f"WHERE id < {earlier}"),
                ("sms_attempt", "started_at", f"WHERE id < {earlier}"),
            ):
                connection.exec_driver_sql(f"UPDATE {table} SET {column} = {column} - 1e8 {where}")
        before = store.clock() - 5e7
        purge(store, old_campaigns(store, before), before)


@pytest.mark.parametrize("goes_on", ["after a wait", "in a retry"])
def test_a_purge_while_the_source_is_read_forgets_nobody(sms_default, ledger_path, sandbox, goes_on):
    """The campaign is in use from the moment at which a leg or a retry begins: nobody is texted twice."""
    from airflow.providers.common.compat.sdk import task

    sandbox.state.set_balance(200)
    reads = []

    def recipients():
        reads.append(1)
        if len(reads) == 2:
            purge_years_later(ledger_path)
        return [{"destination": str(27_820_000_000 + n)} for n in range(300)]

    def top_up(*_):
        sandbox.state.set_balance(1000)

    def looks():
        return sum(request.operation == "balance" for request in sandbox.state.requests)

    waits = goes_on == "after a wait"
    # Half of what the service charges: the credit runs out in the middle.
    wait = {"on_low_balance": "wait", "cost_per_part": 0.5}
    options = wait if waits else {"on_low_balance": "send"}
    with later(top_up, lambda: looks() > 2) if waits else nullcontext():
        ran = run_task(
            lambda: (
                task.bulk_sms(task_id="send", message="Hi", concurrency=1, on_retry_callback=top_up, **options)(
                    recipients
                )().operator
            ),
            retries=1,
        )
    texted = [number for number, _ in sandbox.state.accepted_messages]
    assert (ran.state, len(reads), len(texted), len(set(texted))) == ("success", 2, 300, 300)


@pytest.mark.parametrize("kind", ["bulk", "group"])
def test_a_campaign_that_cannot_be_held_is_not_sent(sms_default, ledger_path, people, sandbox, monkeypatch, kind):
    """A purge could forget it meanwhile: the attempt fails before anything is sent, and Airflow retries it."""

    def fail(*_, **__):
        raise LedgerError("locked")

    monkeypatch.setattr(enter, "note_progress", fail)
    source = people(3)
    ran = run_task(
        lambda: (
            BulkSmsOperator(task_id="send", source=source, message="Hi")
            if kind == "bulk"
            else GroupSmsOperator(task_id="send", message="Hi", groups=["staff"])
        ),
        retries=1,
    )
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 2, [])


def test_a_campaign_that_is_held_is_in_use(store, monkeypatch):
    """A purge that found it before keeps it, too."""
    claims(store, who(1), 3)
    before = store.clock() + 1
    found = old_campaigns(store, before)
    claimant_id = register(store, who(2))
    monkeypatch.setattr(store, "clock", lambda: before)
    note_progress(store, "c", claimant_id, "checking")
    assert [old.name for old in purge(store, found, before).in_use] == ["c"]


@pytest.mark.parametrize(("version", "refused"), [("3.3.2", False), ("3.4.0b2", True), ("4.0.0", True)])
def test_from_3_4_on_a_clear_discards_the_note(store, monkeypatch, version, refused):
    """So there no note proves nothing, and the try number counts."""
    monkeypatch.setattr("airflow.__version__", version)
    context = {"task_state_store": State()}
    if refused:
        with pytest.raises(InputError, match="no trace"):
            refuse(context, store, who(2))
    else:
        refuse(context, store, who(2))


# The ledger of a task in PostgreSQL


@pytest.fixture
def sms_ledger(postgres_url, monkeypatch):
    """Point the connection ``sms_ledger`` at an empty database."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": postgres_url.username}))
    return postgres_url


def test_the_way_out_leads_to_the_ledger_of_the_task(sms_default, people, sms_ledger, sandbox, monkeypatch):
    """Without its connection, the command would adopt the configured ledger, and the task would be refused again."""
    engine = create_engine(sms_ledger)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA elsewhere"))
    engine.dispose()
    fields = json.loads(os.environ["AIRFLOW_CONN_SMS_LEDGER"])
    fields["extra"] = {"options": "-c search_path=elsewhere"}
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(fields))
    sandbox.state.set_balance(0)
    source = people(2)
    ran = run_task(
        lambda: BulkSmsOperator(
            task_id="send",
            source=source,
            message="Hi",
            on_low_balance="fail",
            ledger_conn_id="{{ 'sms_ledger' if ti.try_number == 1 else 'other' }}",
        ),
        retries=1,
    )
    assert (ran.state, ran.tries, "has no trace of an earlier one" in ran.log) == ("failed", 2, True)
    command = rf"airflow-sms adopt dag_\d+ send {re.escape(ran.run_id)} --ledger-conn-id other"
    assert re.search(command, ran.log)


def states_in(url):
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT state, sum(submitted) FROM sms_request GROUP BY state")).all()
    engine.dispose()
    return {state: int(count) for state, count in rows}


def test_a_campaign_in_postgresql_goes_out_once(send, people, sms_ledger, sandbox, witnessed, ledger_path):
    """A task given a connection keeps its claims there, and no file is made."""
    source = people(250)
    ran = send(source, campaign="spring", ledger_conn_id="sms_ledger")
    again = send(source, campaign="spring", ledger_conn_id="{{ 'sms_ledger' }}")
    assert (ran.summary["accepted"], again.summary["already_sent"]) == (250, 250)
    assert (set(witnessed().values()), states_in(sms_ledger), ledger_path.exists()) == ({1}, {"accepted": 250}, False)


def test_a_task_holds_two_connections_at_most(send, people, sms_ledger, monkeypatch):
    """One of the sender's, and one of the main thread's for progress: a server has few."""
    engine = create_engine(sms_ledger, isolation_level="AUTOCOMMIT")
    held, two, ended = set(), threading.Event(), threading.Event()
    claim = CampaignLedger._claim

    def watch():
        query = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'airflow-provider-sms'")
        with engine.connect() as connection:
            while not ended.wait(0.01):
                held.add(connection.execute(query).scalar())
                if max(held) > 1:
                    two.set()

    def claim_while_the_main_thread_reads(*arguments):
        two.wait(3.0)
        return claim(*arguments)

    monkeypatch.setattr(CampaignLedger, "_claim", claim_while_the_main_thread_reads)
    watching = threading.Thread(target=watch)
    watching.start()
    ran = send(people(1000), ledger_conn_id="sms_ledger", max_requests_per_second=10)
    ended.set()
    watching.join(10.0)
    engine.dispose()
    assert (ran.state, max(held)) == ("success", 2)


def test_a_database_that_cannot_be_reached_sends_nothing(send, people, sandbox, tmp_path, monkeypatch):
    """Without a durable claim nothing goes out; Airflow may retry."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0")
    connection = {"conn_type": "postgres", "host": str(tmp_path), "login": "nobody", "password": "pass-word-1"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps(connection))
    ran = send(people(5), ledger_conn_id="sms_ledger", retries=1)
    assert (ran.state, ran.tries, ran.xcoms, sandbox.state.requests) == ("failed", 2, {}, [])
    assert ("The ledger cannot be" in ran.log, "pass-word-1" in ran.log) == (True, False)


def test_the_guard_holds_in_airflow_and_can_be_overridden(send, people, sandbox, monkeypatch):
    """A deployment whose executor is remote is refused until it says that its disk is shared."""
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "airflow.executors.local_executor.LocalExecutor,my.RemoteExecutor")
    ran = send(people(5), retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert "RemoteExecutor runs tasks on several machines" in ran.log
    monkeypatch.setenv("AIRFLOW__SMS__ALLOW_LOCAL_LEDGER", "True")
    assert send(people(5)).state == "success"
