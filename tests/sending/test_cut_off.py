"""Two tasks of one campaign, of which one is cut off from PostgreSQL while it has claims."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest
from support.forwarder import Forwarder
from support.sending import claimant, people

from airflow_provider_sms.execution.failures import failure
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.request_queries import claimants_of
from airflow_provider_sms.sending import sender
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


def test_a_task_that_meets_another_ones_lapsed_claims_is_named_and_worth_a_retry(
    postgres_ledger_url, way, service, cut_off
):
    """The one that was cut off records its outcome once the network is back, and then nobody is unknown or twice."""
    first, thread = cut_off()
    with closing(open_postgres(postgres_ledger_url)) as store:
        second = sender_of(CampaignLedger(store, "c", claimant(task_id="healthy")), service)
        second.run([people(COUNT)])
        claimants = claimants_of(store, second.counts.unrecorded)
        way.speak()
        thread.join(PATIENCE)
        again = sender_of(CampaignLedger(store, "c", claimant(2, task_id="healthy")), service)
        again.run([people(COUNT)])
    assert (second.error, second.counts.accepted, second.counts.unrecorded) == (None, 20, {3: CHUNK})
    failed = failure("c", second.counts, None, stopped=False, resend_unknown=False, claimants=claimants)
    assert (failed.permanent, "task cut of DAG d, run r, on host worker-1" in failed.words) == (False, True)
    assert (first.counts.accepted, first.counts.unknown) == (30, 0)
    assert (again.error, again.counts.already_sent, again.counts.unknown) == (None, COUNT, 0)
    assert (len(service.taken), service.duplicates) == (COUNT, 0)
