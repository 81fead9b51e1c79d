from __future__ import annotations

import time
from decimal import Decimal

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from support.airflow import run_task
from support.ledger_fixtures import configured_store
from support.sending import claim, claimant, close
from support.sending import people as recipients

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger import purge as purging
from airflow_provider_sms.ledger.attempts import note_progress
from airflow_provider_sms.ledger.balances import record_reading
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.operators.sms import PurgeLedgerOperator

KEPT = {"open": 0, "paused": 0, "waiting": 0, "in_use": 0}

store = configured_store


@pytest.fixture
def sent(store, monkeypatch):
    """Send messages as an attempt of a task would, some days ago."""

    def sent(messages, campaign, *, days, state=ACCEPTED):
        at = time.time() - days * 86_400
        monkeypatch.setattr(store, "clock", lambda: at)
        ledger = CampaignLedger(store, campaign, claimant(run_id=campaign), clock=lambda: at)
        close(ledger, claim(ledger, messages), state)
        return ledger

    return sent


@pytest.fixture
def purge():
    """Run a PurgeLedgerOperator in Airflow."""
    return lambda **arguments: run_task(lambda: PurgeLedgerOperator(task_id="purge", **arguments))


@pytest.fixture
def names(store):
    def names():
        with store.read() as connection:
            return sorted(connection.exec_driver_sql("SELECT name FROM sms_campaign").scalars())

    return names


def test_what_is_older_than_the_retention_is_forgotten(store, sent, purge, names, ledger_path):
    """It returns counts, keeps what the command keeps, and forgets nothing more when it runs again."""
    sent(recipients(3), "old", days=11)
    record_reading(store, "a" * 32, Decimal(1), store.clock())
    sent(recipients(2), "unknown", days=12, state=UNKNOWN)
    sent(recipients(2), "paused", days=13)
    pause(store, "paused", "ann")
    waits = sent(recipients(2), "waiting", days=14)
    note_progress(store, "waiting", waits._claimant_id, "waiting for hours")
    sent(recipients(2), "young", days=9)
    ran = purge(retention_days=10)
    kept = {**KEPT, "open": 1, "paused": 1, "waiting": 1}
    assert ran.state == "success"
    before, erased = ran.summary.pop("before"), ran.summary.pop("erased")
    gone = {"campaigns": 1, "messages": 3, "attempts": 1, "balances": 1}
    assert ran.summary == {"retention_days": 10, **gone, "kept": kept}
    assert (before[:2], erased) == ("20", True if ledger_path.exists() else None)
    assert names() == ["paused", "unknown", "waiting", "young"]
    assert "Kept: 1 campaign that somebody paused: paused" in ran.log
    assert "airflow-sms purge --include-waiting): waiting" in ran.log
    again = purge(retention_days=10).summary
    assert (again["campaigns"], again["messages"], again["balances"], again["kept"]) == (0, 0, 0, kept)


def test_the_configured_retention_holds_where_the_operator_names_none(sent, purge, names, monkeypatch):
    """``[sms] retention_days`` is for every such task; an operator's own days take precedence, 0 included.

    The default keeps everything, whatever its age.
    """
    sent(recipients(3), "old", days=4000)
    assert purge().summary == {"retention_days": 0}
    for configured in ("0", ""):
        monkeypatch.setenv("AIRFLOW__SMS__RETENTION_DAYS", configured)
        assert purge().summary == {"retention_days": 0}
    monkeypatch.setenv("AIRFLOW__SMS__RETENTION_DAYS", "10")
    assert purge(retention_days=4012).summary["campaigns"] == 0
    assert purge(retention_days=0).summary == {"retention_days": 0}
    assert purge().summary["campaigns"] == 1
    assert names() == []


def test_no_send_forgets_anything(send, people, sent, names, monkeypatch):
    """A retention is heeded by this operator alone."""
    sent(recipients(3), "old", days=11)
    monkeypatch.setenv("AIRFLOW__SMS__RETENTION_DAYS", "10")
    assert send(people(3), campaign="new").state == "success"
    assert names() == ["new", "old"]


@pytest.mark.parametrize("days", [-1, 1.5, "10", True])
def test_days_that_are_no_whole_number_are_refused(purge, ledger_path, days):
    """When the DAG is loaded; and one that was set later, without a retry, in one message; nothing is forgotten."""
    with pytest.raises(InputError, match="retention_days must be a whole number of days, 0 for"):
        PurgeLedgerOperator(task_id="purge", retention_days=days)
    task = PurgeLedgerOperator(task_id="purge")
    task.retention_days = days
    with pytest.raises(AirflowFailException, match="retention_days must be a whole number of days") as caught:
        task.execute({})
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_a_wrong_option_and_a_ledger_that_is_not_there_are_named(ledger_path, airflow_home, monkeypatch):
    """Another ledger than that of the senders would keep everybody for ever, and nobody would notice."""
    with pytest.raises(AirflowFailException, match=r"There is no ledger at .*\[sms\] ledger_path"):
        PurgeLedgerOperator(task_id="purge", retention_days=10).execute({})
    monkeypatch.setenv("AIRFLOW__SMS__RETENTION_DAYS", "90d")
    with pytest.raises(AirflowFailException, match=r"\[sms\] retention_days must be a whole number"):
        PurgeLedgerOperator(task_id="purge").execute({})


def test_a_killed_task_ends_between_two_transactions(sent, names, store, monkeypatch):
    """It fails, so that nobody believes that all is forgotten; the next run goes on from there."""
    for number in range(3):
        sent(recipients(1, 10 * number), f"old {number}", days=20 - number)
    operator = PurgeLedgerOperator(task_id="purge", retention_days=10)
    forget_some = purging._forget_some

    def killed(*arguments):
        forgotten = forget_some(*arguments)
        if forgotten[1]:
            operator.on_kill()
        return forgotten

    monkeypatch.setattr(purging, "_forget_some", killed)
    with pytest.raises(AirflowException, match="Told to stop"):
        operator.execute({})
    assert names() == ["old 1", "old 2"]
