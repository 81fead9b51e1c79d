from __future__ import annotations

import pytest
from support.airflow import run_task

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
    """Airflow 3.0 would take its error for one of the task."""
    from airflow.providers.common.compat.sdk import XCom

    def refuse(**_):
        raise ConnectionError

    monkeypatch.setattr(XCom, "get_value", refuse)
    assert SmsReportLink().get_link(None, ti_key=None) == ""


def test_airflow_is_told_of_every_link():
    """Before Airflow 3 the web server shows only links that the provider's metadata names."""
    links = {type(link) for operator in (BulkSmsOperator, GroupSmsOperator) for link in operator.operator_extra_links}
    assert links == {SmsReportLink, SmsSandboxLink}
    assert {f"{link.__module__}.{link.__qualname__}" for link in links} == set(get_provider_info()["extra-links"])
    assert {(link().name, link().xcom_key) for link in links} == {("SMS report", REPORT), ("SMS sandbox", SANDBOX)}
