from __future__ import annotations

import pytest
from support.airflow import run_task

from airflow_provider_sms.exceptions import InputError

PEOPLE = [{"destination": "27820000001", "name": "Thandi"}, {"destination": "27820000002", "name": "Pieter"}]
ELSEWHERE = '{"conn_type": "sms", "host": "sms.invalid", "password": "a-real-token"}'


@pytest.fixture
def sms_only_on_this_machine(monkeypatch):
    """The rule of the plugin, which other tests of this package do without."""
    from airflow_provider_sms.testing.sandbox import refuse_other_machines

    refuse_other_machines(monkeypatch)


@pytest.fixture
def send(airflow_home, sms_sandbox):
    """Run a task that texts people, in Airflow."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    def send(**arguments):
        return run_task(lambda: BulkSmsOperator(task_id="text", source=PEOPLE, message="Hi {name}", **arguments))

    return send


def test_a_connection_to_a_service_is_refused(sms_sandbox, send, monkeypatch):
    """A task that would reach a real account texts nobody, until its connection leads to the sandbox."""
    monkeypatch.setenv("AIRFLOW_CONN_SMS_MARKETING", ELSEWHERE)
    ran = send(sms_conn_id="sms_marketing")
    assert (ran.state, "A connection does not lead to the sandbox" in ran.log) == ("failed", True)
    sms_sandbox.connect("sms_marketing")
    assert send(sms_conn_id="sms_marketing").state == "success"
    assert sms_sandbox.texts() == {"27820000001": ["Hi Thandi"], "27820000002": ["Hi Pieter"]}


def test_a_balance_is_not_read_from_another_machine(sms_sandbox):
    """The account's balance may have an address of its own."""
    from airflow_provider_sms.hooks.sms import SmsHook

    sms_sandbox.connect("sms_default", {"balance_url": "https://sms.example.com/v1"})
    with pytest.raises(InputError, match="it was not made"):
        SmsHook().get_balance()


def test_a_ledger_on_a_server_is_refused(sms_sandbox, monkeypatch):
    """In the real one people would count as texted: no connection is made to its server."""
    from airflow_provider_sms.hooks.ledger import open_existing_ledger, open_ledger

    monkeypatch.setenv("AIRFLOW_CONN_REAL_LEDGER", "postgres://sms@127.0.0.1:9/ledger")
    for opening in (open_ledger, open_existing_ledger):
        with pytest.raises(InputError, match="'real_ledger' is not opened"):
            opening("real_ledger")


def test_faults_wait_in_line(sms_sandbox):
    """Each call adds a fault behind those that wait; a slip of the pen is no fault that never comes."""
    sms_sandbox.fail_next("drop_after", times=2)
    sms_sandbox.fail_next("status", status=503)
    waiting = sms_sandbox.service.state.faults
    assert [(each.kind, each.times, each.status) for each in waiting] == [("drop_after", 2, 500), ("status", 1, 503)]
    with pytest.raises(ValueError, match="Input should be 'none'"):
        sms_sandbox.fail_next("explode")
