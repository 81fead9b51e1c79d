"""Two tasks of one campaign, of which one is cut off from PostgreSQL while it has claims."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from support.forwarder import Forwarder
from support.sending import claimant, people

from airflow_provider_sms.execution.failures import failure
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.request_queries import claimants_of
from airflow_provider_sms.sending import flush, sender
from airflow_provider_sms.sending.sender import Sender, SendingOptions
from airflow_provider_sms.stop_flag import StopFlag

COUNT, CHUNK = 50, 10
PATIENCE = 60.0
"""Seconds after which this test gives up; no wait is as long."""


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Let claims lapse within a second."""
    monkeypatch.setattr(sender, "MARGIN_SECONDS", 0.5)


@pytest.fixture
def way(postgres_ledger_url):
    """The network between one of the tasks and the server."""
    with Forwarder(f"{postgres_ledger_url.query['host']}/.s.PGSQL.5432") as way:
        yield way


@pytest.fixture
def cut_off(postgres_ledger_url, way, service):
    """Run a task whose network falls silent once its third request is answered; return its sender and thread."""
    url = postgres_ledger_url.set(host=way.host, port=way.port, query={"connect_timeout": "3"})
    silent = threading.Event()
    opened = []

    def post(messages):
        response = service(messages)
        if len(service.requests) == 3:
            way.fall_silent()
            silent.set()
        return response

    def cut_off():
        opened.append(open_postgres(url, wait_seconds=1.0))
        sending = sender_of(CampaignLedger(opened[0], "c", claimant(task_id="cut", host="worker-1")), post)
        thread = threading.Thread(target=sending.run, args=([people(COUNT)],))
        thread.start()
        assert silent.wait(PATIENCE)
        return sending, thread

    yield cut_off
    way.speak()
    for each in opened:
        each.close()


def sender_of(ledger, post):
    options = SendingOptions(chunk_size=CHUNK, concurrency=1)
    return Sender(ledger, post, post_seconds=0.5, options=options, stop=StopFlag())


def wait_until(condition):
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_task_that_is_back_in_time_fails_no_other(postgres_ledger_url, way, service, cut_off, caplog):
    """The other one waits past the deadline, and finds that the people were texted: nobody is unknown or twice."""
    first, thread = cut_off()
    with closing(open_postgres(postgres_ledger_url)) as store:
        second = sender_of(CampaignLedger(store, "c", claimant(task_id="healthy")), service)
        other = threading.Thread(target=second.run, args=([people(COUNT)],))
        other.start()
        wait_until(lambda: "is past its deadline and has no outcome" in caplog.text)
        way.speak()
        for each in (thread, other):
            each.join(PATIENCE)
    assert (first.counts.accepted, first.counts.unknown) == (30, 0)
    assert (second.error, second.counts.unknown, second.counts.unrecorded) == (None, 0, {})
    assert (second.counts.accepted, second.counts.already_sent) == (20, 30)
    assert (len(service.taken), service.duplicates) == (COUNT, 0)


@pytest.mark.slow
def test_a_task_that_stays_away_is_named_and_worth_a_retry(postgres_ledger_url, service, cut_off, monkeypatch):
    """The other one ends at the bound; who makes the next attempt takes the request for unknown, and texts nobody."""
    monkeypatch.setattr(flush, "FLUSH_SECONDS", 1.0)
    _, thread = cut_off()
    with closing(open_postgres(postgres_ledger_url)) as store:
        ledger = CampaignLedger(store, "c", claimant(task_id="healthy"))
        ledger.unrecorded_seconds = 3.0
        second = sender_of(ledger, service)
        second.run([people(COUNT)])
        claimants = claimants_of(store, second.counts.unrecorded)
        again = sender_of(CampaignLedger(store, "c", claimant(2, task_id="healthy")), service)
        again._ledger.unrecorded_seconds = 3.0
        again.run([people(COUNT)])
    thread.join(PATIENCE)
    assert (second.error, second.counts.accepted, second.counts.unrecorded) == (None, 20, {3: CHUNK})
    failed = failure("c", second.counts, None, stopped=False, resend_unknown=False, claimants=claimants)
    assert (failed.permanent, "task cut of DAG d, run r, on host worker-1" in failed.words) == (False, True)
    assert (again.counts.unknown_requests, again.counts.unrecorded) == ({3}, {})
    assert failure("c", again.counts, None, stopped=False, resend_unknown=False).permanent is True
    assert (len(service.taken), service.duplicates) == (COUNT, 0)
