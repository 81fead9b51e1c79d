from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from support.airflow import run_task
from support.versions import KEEPS_TASK_STATE

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.operators.trace import leave_marker, refuse_without_trace
from airflow_provider_sms.sending.claims import Claimant
from airflow_provider_sms.sending.earlier import register
from airflow_provider_sms.sending.sqlite import open_sqlite

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
    assert "airflow-sms ledger adopt dag_" in ran.log
    assert (ran.summary["rows"], ran.summary["not_sent"]) == (200, 200)


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
    refuse_without_trace({"task_state_store": State()}, store, who(1))
    refuse_without_trace({}, store, who(1))


def test_a_later_try_whose_earlier_ones_never_came_to_a_ledger_goes_on(store):
    """Where Airflow keeps notes, no note means that no try could send."""
    refuse_without_trace({"task_state_store": State()}, store, who(3))


def test_a_later_try_with_a_trace_goes_on(store):
    """The ledger that earlier tries used is the right one, with and without notes."""
    register(store, who(1))
    refuse_without_trace({"task_state_store": State(sms_ledger="x")}, store, who(2))
    refuse_without_trace({}, store, who(2))


@pytest.mark.parametrize("context", [{"task_state_store": State(sms_ledger="PostgreSQL at db")}, {}], ids=str)
def test_a_later_try_without_a_trace_is_refused(store, context):
    """By the note where there is one, else by the try number; another task's trace is none."""
    register(store, who(1, task_id="other"))
    with pytest.raises(InputError, match=r"try 2.*Nothing was sent.*ledger adopt d t r$") as raised:
        refuse_without_trace(context, store, who(2))
    assert ("PostgreSQL at db" in str(raised.value)) == bool(context)


def test_a_mapped_task_is_named_by_its_index(store):
    """The way out names the one task instance."""
    with pytest.raises(InputError, match=r"ledger adopt d t r --map-index 4$"):
        refuse_without_trace({}, store, who(2, map_index=4))


def test_notes_that_airflow_clears_on_success_prove_nothing(store, monkeypatch):
    """Where notes go when a task succeeds, the try number counts again."""
    monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", "True")
    with pytest.raises(InputError, match="no trace"):
        refuse_without_trace({"task_state_store": State()}, store, who(2))


@needs_task_state
def test_a_try_that_was_superseded_does_not_send(store):
    """Airflow takes no note from a try that another one has replaced."""
    with pytest.raises(StoppedError, match="nothing was sent by this try"):
        leave_marker({"task_state_store": Superseded()}, store)


def test_every_try_leaves_its_trace_before_it_sends(send, people, ledger_path):
    """A task that fails on its table has entered the ledger, so that its next try is not refused."""
    ran = send(people(2, destination=["x", "y"]))
    with closing(sqlite3.connect(ledger_path)) as connection:
        rows = connection.execute("SELECT task_id, try_number FROM sms_claimant").fetchall()
    assert (ran.state, rows) == ("failed", [("send", 1)])
