from __future__ import annotations

import threading
import types

import pytest
from support.airflow import run_task
from support.faults.rest import PATIENCE, until

from airflow_provider_sms.execution.replaced_attempt import ReplacementCheck
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.stop_flag import StopFlag


class Server:
    """What a task can ask, and the times at which it did."""

    def __init__(self, state="running", map_index=-1):
        self.now = 100.0
        self.state = state
        self.looks = []
        self.stop = StopFlag()
        ti = types.SimpleNamespace(
            dag_id="d", task_id="t", run_id="r", map_index=map_index, try_number=1, get_task_states=self._states
        )
        self.alive = ReplacementCheck({"ti": ti}, self.stop, clock=lambda: self.now)

    def _states(self, *, dag_id, task_ids, run_ids, map_index):
        self.looks.append(self.now)
        if isinstance(self.state, BaseException):
            raise self.state
        name = task_ids[0] if map_index < 0 else f"{task_ids[0]}_{map_index}"
        return {run_ids[0]: {name: self.state}}

    def beat(self, *seconds):
        for now in seconds:
            self.now = now
            self.alive.beat()


# A task that goes on


def test_a_task_that_runs_is_asked_about_every_two_seconds():
    """However often it beats; the first beat looks."""
    server = Server()
    server.beat(100.5, 101, 101.5, 102, 102.5, 103, 104.5)
    assert (server.looks, server.stop.is_set()) == ([100.5, 102.5, 104.5], False)


def test_a_mapped_task_is_asked_about_by_its_index():
    """What befalls another task of the same operator is not meant."""
    server = Server(map_index=3)
    server.beat(101)
    assert (server.looks, server.stop.is_set()) == ([101], False)


@pytest.mark.parametrize("answer", [RuntimeError("404 27820000000"), None], ids=["error", "shape"])
def test_a_look_that_fails_is_no_reason_to_stop(answer, caplog):
    """It is logged once, without the error's words, and not tried again."""
    server = Server(answer, map_index=3)
    if answer is None:
        server.alive._ti.get_task_states = lambda **_: {"r": {}}
    server.beat(101, 110, 120)
    assert (len(server.looks) <= 1, server.stop.is_set(), len(caplog.records)) == (True, False, 1)
    assert "so it is not asked again: " in caplog.text
    assert "2782" not in caplog.text


def test_an_interruption_gets_through():
    """What Airflow raises to end a task, such as its timeout, is no failure of a look."""
    with pytest.raises(KeyboardInterrupt):
        Server(KeyboardInterrupt()).beat(101)


# A task that was taken away


@pytest.mark.parametrize("state", ["failed", "success", "restarting", "up_for_retry", "removed", "queued", None])
def test_any_other_state_stops_it(state, caplog):
    """Failed, cleared, or begun anew: said once, and nothing is asked after it."""
    server = Server(state)
    server.beat(101, 104)
    assert (server.stop.is_set(), server.looks) == (True, [101])
    assert f"Airflow has this task as {state or 'none'}, no longer as running" in caplog.text


def test_a_task_that_stops_for_another_reason_is_not_asked_about():
    """Airflow may be shutting down."""
    server = Server()
    server.stop.set()
    server.beat(101)
    assert server.looks == []


# In a real Airflow


def now_is(state, *, dag_id):
    """Give the task of a DAG another state, as Airflow's web page does."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(TaskInstance).where(TaskInstance.dag_id == dag_id).values(state=state))


@pytest.fixture
def befalls(sandbox):
    """Do something once the service has been sent a request, while every answer takes its time."""
    threads = []

    def befalls(what):
        sandbox.state.set_faults([{"kind": "delay", "seconds": 0.3, "persistent": True}])

        def wait():
            until(lambda: sandbox.state.accepted or sandbox.state.requests, seconds=PATIENCE, what="it sends")
            what()

        threads.append(threading.Thread(target=wait))
        threads[-1].start()

    yield befalls
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("dag_id", "state"), [("marked_failed", "failed"), ("marked_success", "success")])
def test_a_task_that_was_taken_away_claims_nothing_more(
    dag_id, state, sms_default, ledger_path, people, befalls, witnessed
):
    """What is in flight is recorded, the rest is not sent, and every row is in one count."""
    befalls(lambda: now_is(state, dag_id=dag_id))
    source = people(4000)
    ran = run_task(lambda: BulkSmsOperator(task_id="send", source=source, message="Hi", concurrency=2), dag_id=dag_id)
    summary = ran.summary
    assert sum(summary[name] for name in COUNTS) == summary["rows"] == 4000
    assert (summary["unknown"], summary["accepted"] + summary["not_sent"]) == (0, 4000)
    assert 0 < summary["accepted"] == len(witnessed()) < 4000
    assert f"Airflow has this task as {state}, no longer as running" in ran.log


@pytest.mark.slow
def test_a_mapped_task_goes_on_when_another_of_its_operator_is_taken_away(
    sms_default, ledger_path, people, befalls, witnessed
):
    """Each is asked about by its own index."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    def fail_the_other():
        with create_session() as session:
            other = (TaskInstance.dag_id == "one_of_two") & (TaskInstance.map_index == 1)
            session.execute(update(TaskInstance).where(other).values(state="failed"))

    befalls(fail_the_other)
    source = people(600)
    run_task(
        lambda: BulkSmsOperator.partial(task_id="send", message="Hi", concurrency=1).expand(source=[source, source]),
        dag_id="one_of_two",
        only=None,
    )
    assert set(witnessed().values()) >= {1}
    assert len(witnessed()) == 600
