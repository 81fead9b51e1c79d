from __future__ import annotations

import types

import pytest
from support.airflow import run_task
from support.people import somebody_answers
from support.versions import ASKS_WITHOUT_TRIGGER

from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.operators.links import SmsReportLink, SmsSandboxLink
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

REPORT, SANDBOX = "_link_sms_report", "_link_sms_sandbox"


@pytest.fixture
def opened_at(monkeypatch):
    """Configure where reports can be opened."""
    return lambda template: monkeypatch.setenv("AIRFLOW__SMS__REPORT_URL", template)


def test_links_are_there_when_the_task_has_ended(send, people, tmp_path, sandbox, opened_at):
    """Airflow stores what the links give in the end, which is what the task pushed before."""
    opened_at("https://files.example.com{path}")
    report = tmp_path / "report.parquet"
    ran = send(people(3), report=str(report))
    assert ran.xcoms[REPORT] == f"https://files.example.com{report}"
    assert ran.xcoms[SANDBOX] == sandbox.base_url.removesuffix("v1")


def test_a_task_that_fails_has_its_links(send, people, tmp_path, sandbox, opened_at):
    """That is when a report is read most."""
    opened_at("https://files.example.com{path}")
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = send(people(3), report=str(tmp_path / "report.parquet"))
    assert (ran.state, bool(ran.xcoms[REPORT]), bool(ran.xcoms[SANDBOX])) == ("failed", True, True)


def test_without_an_address_there_is_no_button(send, people, tmp_path):
    """An empty link is none."""
    ran = send(people(3), report=str(tmp_path / "report.parquet"))
    assert not ran.xcoms.get(REPORT)


def test_a_group_has_the_link_to_the_sandbox(sms_default, ledger_path, sandbox):
    """There is no report of a group."""
    ran = run_task(lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"]))
    assert ran.xcoms[SANDBOX] == sandbox.base_url.removesuffix("v1")
    assert REPORT not in ran.xcoms


def test_a_link_that_cannot_be_read_is_none(monkeypatch):
    """The task is done: an error about a button would be no help."""
    from airflow.providers.common.compat.sdk import XCom

    def refuse(**_):
        raise ConnectionError

    monkeypatch.setattr(XCom, "get_value", refuse)
    resumed = types.SimpleNamespace(links_pushed={}, is_resumed=True)
    assert SmsReportLink().get_link(resumed, ti_key=None) == ""


@pytest.mark.parametrize("ends_well", [True, False], ids=["success", "failure"])
def test_no_link_asks_for_what_was_not_pushed(send, people, sandbox, ends_well):
    """Airflow would log an error as the last line, also of a success."""
    ran = send(people(3), max_rows=None if ends_well else 1)
    assert ran.state == ("success" if ends_well else "failed")
    assert "XCom not found" not in ran.log


def test_a_task_that_never_began_has_no_link(monkeypatch):
    """As one whose template cannot be rendered: nothing is asked."""
    from airflow.providers.common.compat.sdk import XCom

    asked = []
    monkeypatch.setattr(XCom, "get_value", lambda **which: asked.append(which))
    for operator in (BulkSmsOperator(task_id="t", source="s", message="m"), None):
        assert SmsReportLink().get_link(operator, ti_key=None) == ""
    assert asked == []


@pytest.mark.skipif(not ASKS_WITHOUT_TRIGGER, reason="before Airflow 3.3 nobody can answer in dag.test()")
def test_a_link_outlives_a_wait(send, people, tmp_path, sandbox, opened_at, sms_default):
    """A leg after a deferral that ends before it has links keeps those of the leg before."""
    opened_at("https://files.example.com{path}")
    source, report = people(3), tmp_path / "report.parquet"

    def lose_connection():
        sms_default(password=None)
        return {}

    sandbox.state.set_faults([{"kind": "drop_before"}])
    with somebody_answers(("Resend", lose_connection)):
        ran = send(source, report=str(report), on_unknown="ask")
    assert (ran.state, ran.xcoms[REPORT]) == ("failed", f"https://files.example.com{report}")
    assert "'sms_default' has no password" in ran.log
    assert "XCom not found" not in ran.log


def test_airflow_is_told_of_every_link():
    """The provider's metadata names each."""
    links = {type(link) for operator in (BulkSmsOperator, GroupSmsOperator) for link in operator.operator_extra_links}
    assert links == {SmsReportLink, SmsSandboxLink}
    assert {f"{link.__module__}.{link.__qualname__}" for link in links} == set(get_provider_info()["extra-links"])
    assert {(link().name, link().xcom_key) for link in links} == {("SMS report", REPORT), ("SMS sandbox", SANDBOX)}
