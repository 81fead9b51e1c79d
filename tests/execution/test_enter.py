from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing, nullcontext
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import task
from sqlalchemy import create_engine, text
from support.airflow import run_task
from support.later import later
from support.sending import accept, claimant
from support.sending import people as recipients
from support.versions import KEEPS_TASK_STATE

from airflow_provider_sms.exceptions import InputError, LedgerError, StoppedError
from airflow_provider_sms.execution import enter
from airflow_provider_sms.execution.enter import note_ledger, refuse_without_trace
from airflow_provider_sms.ledger.attempts import adopt, register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.purge import old_campaigns, purge
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.operators.sms import BulkSmsOperator

refuse = partial(refuse_without_trace, resumed=False, ledger_conn_id=None)

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
            task_id="send", source=source, message="Hi", concurrency=1, on_unknown="resend", on_retry_callback=lose
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


@pytest.mark.parametrize(
    ("state", "try_number", "version", "goes_on"),
    [
        (State(), 1, "3.3.2", True),
        (None, 1, "3.1.0", True),
        (State(), 3, "3.3.2", True),  # Airflow keeps notes as long as the run: no try came to a ledger
        (State(sms_ledger="PostgreSQL at db"), 2, "3.3.2", False),
        (None, 2, "3.1.0", False),
        (State(), 2, "cleared on success", False),
        (State(), 2, "3.4.0b2", False),  # from here on a clear discards the note
        (State(), 2, "4.0.0", False),
    ],
)
def test_a_try_needs_a_trace_where_an_earlier_one_may_have_texted(
    store, monkeypatch, state, try_number, version, goes_on
):
    """By the note where there is one that a clear outlives, else by the try number; another task's trace is none."""
    if version == "cleared on success":
        monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", "True")
        version = "3.3.2"
    monkeypatch.setattr("airflow.__version__", version)
    context = {} if state is None else {"task_state_store": state}
    register(store, claimant(1, task_id="other"))
    if not goes_on:
        words = r"attempt 2.*no trace.*Nothing was sent.*airflow-sms adopt d t r$"
        with pytest.raises(InputError, match=words) as raised:
            refuse(context, store, claimant(2))
        assert ("PostgreSQL at db" in str(raised.value)) == bool(state and state.kept)
        register(store, claimant(1))
    refuse(context, store, claimant(try_number))


def test_the_way_out_leads_to_the_one_task_instance_and_its_ledger(store):
    """Else the command would adopt another one, or the configured ledger, and the task would be refused again."""
    with pytest.raises(InputError, match=r"airflow-sms adopt d t r --map-index 4 --ledger-conn-id other$"):
        refuse({}, store, claimant(2, map_index=4), ledger_conn_id="other")


@needs_task_state
def test_a_try_that_was_superseded_does_not_send(store):
    """Airflow takes no note from a try that another one has replaced."""
    with pytest.raises(StoppedError, match="This attempt sent nothing"):
        note_ledger({"task_state_store": Superseded()}, store)


@pytest.mark.parametrize(("destination", "flag"), [(["x", "y"], False), (["27820000001"] * 2, "{{ none }}")])
def test_every_try_leaves_its_trace_before_it_sends(send, people, ledger_path, destination, flag):
    """A task that fails on its table or arguments has entered the ledger, so that its next try is not refused."""
    ran = send(people(2, destination=destination), dry_run=flag)
    with closing(sqlite3.connect(ledger_path)) as connection:
        rows = connection.execute("SELECT task_id, try_number FROM sms_attempt").fetchall()
    assert (ran.state, rows) == ("failed", [("send", 1)])


@pytest.mark.parametrize("context", [{"task_state_store": State()}, {}], ids=["store", "none"])
def test_a_leg_after_a_wait_must_find_the_leg_before_it(store, context):
    """On every version and in a first try: what another try left is no trace of it; an adoption is."""
    register(store, claimant(2))
    with pytest.raises(InputError, match=r"^This is attempt 3 after a wait, and .* has no trace"):
        refuse(context, store, claimant(3), resumed=True)
    adopt(store, claimant(0))
    refuse(context, store, claimant(3), resumed=True)
    register(store, claimant(1, run_id="other"))
    refuse(context, store, claimant(1, run_id="other"), resumed=True)


def test_a_leg_whose_campaign_was_purged_is_refused(store):
    """Nobody of those whom it texted before it waited is texted again."""
    accept(CampaignLedger(store, "c", claimant(1)), recipients(1))
    later = store.clock() + 1
    purge(store, old_campaigns(store, later), later)
    with pytest.raises(InputError, match="was the campaign purged"):
        refuse({}, store, claimant(1), resumed=True)


@pytest.mark.parametrize("goes_on", ["after a wait", "in a retry"])
def test_a_purge_while_the_source_is_read_forgets_nobody(sms_default, ledger_path, sandbox, goes_on):
    """The campaign is in use from the moment at which a leg or a retry begins: nobody is texted twice."""
    sandbox.state.set_balance(200)
    reads, before = [], []

    def recipients():
        reads.append(1)
        if len(reads) == 2:  # as if the leg or the attempt before had ended years ago
            with closing(open_sqlite(ledger_path)) as store:
                purge(store, old_campaigns(store, before[0]), before[0])
        return [{"destination": str(27_820_000_000 + n)} for n in range(300)]

    def top_up(*_):
        before.append(time.time())
        sandbox.state.set_balance(1000)

    def looks():
        return sum(request.operation == "balance" for request in sandbox.state.requests)

    waits = goes_on == "after a wait"
    # Half of what the service charges: the credit runs out in the middle.
    options = {"on_low_balance": "wait", "cost_per_part": 0.5} if waits else {"on_retry_callback": top_up}
    make = task.bulk_sms(task_id="send", message="Hi", concurrency=1, **options)(recipients)
    with later(top_up, lambda: looks() > 2) if waits else nullcontext():
        ran = run_task(lambda: make().operator, retries=1)
    texted = [number for number, _ in sandbox.state.accepted_messages]
    assert (ran.state, len(reads), len(texted), len(set(texted))) == ("success", 2, 300, 300)


def test_a_campaign_that_cannot_be_held_is_not_sent(send, people, sandbox, monkeypatch):
    """A purge could forget it meanwhile: the attempt fails before anything is sent, and Airflow retries it."""

    def fail(*_, **__):
        raise LedgerError("locked")

    monkeypatch.setattr(enter, "note_progress", fail)
    ran = send(people(3), retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 2, [])


# The ledger of a task in PostgreSQL


@pytest.fixture
def sms_ledger(postgres_url, monkeypatch):
    """Point the connection ``sms_ledger`` at an empty database."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": postgres_url.username}))
    return postgres_url


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
    monkeypatch.setattr("airflow_provider_sms.execution.progress.EVERY_SECONDS", 0.05)
    watching = threading.Thread(target=watch)
    watching.start()
    ran = send(people(1000), ledger_conn_id="sms_ledger", max_requests_per_second=10)
    ended.set()
    watching.join(10.0)
    engine.dispose()
    assert (ran.state, max(held)) == ("success", 2)


def test_the_guard_holds_in_airflow_and_can_be_overridden(send, people, sandbox, monkeypatch):
    """A deployment whose executor is remote is refused until it says that its disk is shared."""
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "airflow.executors.local_executor.LocalExecutor,my.RemoteExecutor")
    ran = send(people(5), retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert "RemoteExecutor runs tasks on several machines" in ran.log
    monkeypatch.setenv("AIRFLOW__SMS__ALLOW_LOCAL_LEDGER", "True")
    assert send(people(5)).state == "success"
