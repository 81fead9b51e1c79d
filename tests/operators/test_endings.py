"""However an attempt ends, its counts say no more than the ledger knows, and nothing lets Airflow text people twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from support.airflow import run_task

from airflow_provider_sms.exceptions import LedgerAwayError
from airflow_provider_sms.execution import bulk, xcom
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.sending.settle import Settle
from airflow_provider_sms.service.client import SmsClient


@pytest.fixture
def goes_back(ledger_path, monkeypatch):
    """Let the ledger lose every request once so many were posted; return a list with one entry from then on."""

    def goes_back(method, requests):
        posts, posted, gone = getattr(SmsClient, method), [], []

        def post(self, *args, **kwargs):
            response = posts(self, *args, **kwargs)
            posted.append(response)
            if len(posted) == requests:
                with closing(sqlite3.connect(ledger_path, timeout=10)) as connection, connection:
                    connection.execute("DELETE FROM sms_message")
                    connection.execute("DELETE FROM sms_request")
                gone.append(True)
            return response

        monkeypatch.setattr(SmsClient, method, post)
        return gone

    return goes_back


@pytest.fixture(params=["summary", "settle"])
def hides_it(request, monkeypatch):
    """Raise another error after the ledger went back: one of a push, or one between two passes."""

    def hides_it(gone):
        if request.param == "summary":
            push = bulk.push

            def push_of_nothing(context, key, value):
                if key == xcom.SUMMARY and gone:
                    raise AirflowException("the API server is away")
                push(context, key, value)

            monkeypatch.setattr(bulk, "push", push_of_nothing)
        else:
            run = Settle.run

            def settle(self, sender):
                run(self, sender)
                raise OSError("too many open files")

            monkeypatch.setattr(Settle, "run", settle)

    return hides_it


def test_nothing_hides_that_the_ledger_went_back(send, people, goes_back, hides_it, witnessed):
    """It has forgotten people, so a retry would text them twice: the task fails for good, whatever else is raised."""
    hides_it(goes_back("send_bulk", 2))
    ran = send(people(4), campaign="spring", retries=1, chunk_size=2, concurrency=1)
    assert (ran.state, ran.tries, set(witnessed().values())) == ("failed", 1, {1})
    assert "has lost requests" in ran.log


def test_a_text_to_groups_may_have_been_sent_if_the_ledger_went_back(sms_default, ledger_path, goes_back, sandbox):
    """A retry would send it twice."""
    goes_back("send_group", 1)
    ran = run_task(lambda: GroupSmsOperator(task_id="g", message="Hi", groups=["staff"], campaign="c"), retries=1)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "Campaign c: 1 message may have been sent" in ran.log


@pytest.mark.parametrize("fails", ["counting", "settling"])
def test_rows_that_were_not_counted_may_have_been_sent(send, people, ledger_path, monkeypatch, fails):
    """Unless they were counted after all, once something between two passes failed."""

    def failing(*args):
        raise OSError("too many open files")

    if fails == "counting":
        monkeypatch.setattr(bulk, "count_rows", failing)
    else:
        monkeypatch.setattr(Settle, "run", failing)
    ran = send(people(5), campaign="spring")
    assert ran.state == "failed"
    counted = ("accepted", "unknown", "not_sent")
    assert [ran.summary[name] for name in counted] == ([0, 5, 0] if fails == "counting" else [5, 0, 0])


def test_a_send_that_cannot_begin_is_counted_by_the_ledger(send, people, monkeypatch, tmp_path):
    """Nothing was claimed, so nobody is unknown."""

    def away(self):
        raise LedgerAwayError("The ledger is away")

    monkeypatch.setattr(CampaignLedger, "has_unknown", away)
    path = tmp_path / "report.parquet"
    ran = send(people(3), "Hi", report=str(path))
    assert (ran.summary["unknown"], ran.summary["not_sent"], path.exists()) == (0, 3, True)
    assert "The ledger is away" in ran.log
