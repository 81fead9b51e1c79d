from __future__ import annotations

import getpass
import time
from decimal import Decimal

from support.airflow import run_task
from support.sending import people
from support.told import pause_of

from airflow_provider_sms.cli import console, write_commands
from airflow_provider_sms.formatting import iso
from airflow_provider_sms.ledger.attempts import note_progress
from airflow_provider_sms.ledger.balances import record_reading
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN

LONG_AGO = time.time() - 100 * 86_400


def mapped_run():
    """Run a task that is mapped three times, which leaves nothing in the ledger, and give the run."""
    from airflow.providers.common.compat.sdk import task

    @task
    def send(number):
        return number

    return run_task(lambda: send.expand(number=[0, 1, 2]), only=None)


def test_a_task_that_airflow_has_is_adopted(ledger, store, at_terminal, rows, monkeypatch):
    """A mistyped name, or a mapped task without its index, is an error with all ids; the ledger names the person."""
    run = mapped_run()
    for ids, words in {
        ("another", "send", run.run_id): f"task send of DAG another, run {run.run_id}",
        (run.dag_id, "sned", run.run_id): f"task sned of DAG {run.dag_id}, run {run.run_id}",
        (run.dag_id, "send", "manual__1"): f"task send of DAG {run.dag_id}, run manual__1",
        (run.dag_id, "send", run.run_id): f"task send of DAG {run.dag_id}, run {run.run_id}",
        (run.dag_id, "send", run.run_id, "--map-index", "3"): f"run {run.run_id}, map index 3",
    }.items():
        said = ledger("adopt", *ids, "--yes")
        assert (said.status, said.out) == (1, "")
        assert said.err.startswith(f"Neither Airflow nor the ledger {store.description} has ")
        assert f"{words}. Nothing was done." in said.err
    assert rows("SELECT id FROM sms_attempt") == []
    monkeypatch.setattr(write_commands.socket, "gethostname", lambda: "office")
    at_terminal("yes\n")
    said = ledger("adopt", run.dag_id, "send", run.run_id, "--map-index", "2")
    assert (said.status, "will be sent again" in said.err) == (0, True)
    assert f"task send of DAG {run.dag_id}, run {run.run_id}, map index 2" in said.err
    adopted = rows("SELECT dag_id, task_id, run_id, map_index, try_number, pid, host FROM sms_attempt")
    assert adopted == [(run.dag_id, "send", run.run_id, 2, 0, 0, f"{getpass.getuser()}@office")]


def test_a_task_of_which_the_ledger_has_lost_a_part_is_adopted(ledger, sent, rows):
    """The ledger may have lost only a part; the command says how much it has."""
    sent(people(1))
    said = ledger("adopt", "d", "t", "r", "--yes")
    assert (said.status, "which has 1 request of that task" in said.err) == (0, True)
    assert rows("SELECT try_number FROM sms_attempt ORDER BY id") == [(1,), (0,)]


def test_a_campaign_is_paused_and_resumed(ledger, sent, store, rows):
    """Nobody is asked; the command says what it means and how to undo it, and twice is no failure."""
    sent(people(3), None, campaign="the spring")
    said = ledger("pause", "the spring")
    assert (said.status, said.out) == (0, "")
    assert said.err.startswith("Campaign the spring is paused: from now on no task on any machine claims any of it.\n")
    assert "Requests that were claimed before are still posted, and their outcomes recorded.\n" in said.err
    assert said.err.endswith(" until you run airflow-sms resume\n")
    since = f"{getpass.getuser()} since {iso(pause_of(store, 'the spring').paused_at)}"
    assert ledger("show", "the spring", "-o", "json").data[0]["paused"] == [f"by {since}"]
    assert ledger("pause", "the spring").err.startswith(f"Campaign the spring is paused already, by {since}\n")
    said = ledger("resume", "the spring")
    assert (said.status, said.out) == (0, "")
    assert said.err.startswith(f"Campaign the spring is resumed: {since.replace('since', 'had paused it at')}. ")
    assert pause_of(store, "the spring") is None
    assert rows("SELECT paused_by, resumed_by FROM sms_campaign") == [(getpass.getuser(), getpass.getuser())]
    said = ledger("resume", "the spring")
    assert (said.status, said.err) == (0, "Campaign the spring is not paused: there is nothing to resume\n")


def test_old_campaigns_are_forgotten(ledger, sent, store, holders, at_terminal, rows, monkeypatch):
    """The command first says how much it forgets and what that means, and names what it keeps and why."""
    sent(people(3), campaign="old", at=LONG_AGO)
    sent(people(2), campaign="older", at=LONG_AGO - 60)
    sent(people(1), UNKNOWN, campaign="old and unknown", at=LONG_AGO)
    sent(people(4), campaign="young")
    sent(people(2), campaign="held", at=LONG_AGO)
    sent(people(2), campaign="used", at=LONG_AGO)
    sent(people(1), campaign="waits", at=LONG_AGO)
    ((waits,),) = rows("SELECT max(id) FROM sms_attempt")
    with monkeypatch.context() as then:
        then.setattr(store, "clock", lambda: LONG_AGO)
        pause(store, "held", "ann")
        note_progress(store, "waits", waits, "waiting for hours")
        record_reading(store, "a" * 32, Decimal(1), LONG_AGO)
    at_terminal(lambda: (sent(people(1, 10), campaign="used"), "y\n")[1])
    said = ledger("purge", "--older-than", "84")
    assert said.status == 1
    assert "Kept: 1 campaign with requests that are unknown or under way: old and unknown\n" in said.err
    assert "Kept: 1 campaign that somebody paused: held\n" in said.err
    assert "Kept: 1 campaign with a task that waits for hours or credit, and would text people again" in said.err
    assert "airflow-sms purge --include-waiting): waits\n" in said.err
    assert " and 3 campaigns with 7 messages, without activity since then\nolder, old, used\n" in said.err
    assert "A forgotten campaign protects nobody" in said.err
    assert "Forgotten: 2 campaigns with 5 messages, " in said.err
    assert " 1 balance. " in said.err
    assert said.err.endswith("Kept: 1 campaign used again meanwhile: used\n")
    assert ledger("purge", "--older-than", "90", "--yes", "--include-waiting").status == 0
    names = ("old", "older", "old and unknown", "young", "held", "used", "waits")
    states = [holders(people(4), name) for name in names]
    assert states == [set(), set(), {UNKNOWN}, {ACCEPTED}, {ACCEPTED}, {ACCEPTED}, set()]


def test_a_user_without_a_name_is_recorded_by_number(ledger, sent, rows, monkeypatch):
    """In a container the user need not be in the list of users."""

    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr(console.getpass, "getuser", nameless)
    request = sent(people(1), UNKNOWN)
    assert ledger("resolve", request, "--as", "accepted", "--yes").status == 0
    assert rows("SELECT decided_by FROM sms_request WHERE decided_at > 0")[0][0].startswith("uid ")
