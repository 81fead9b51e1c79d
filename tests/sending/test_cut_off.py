"""Two tasks of one campaign, of which one is cut off from PostgreSQL while it has claims."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from support.forwarder import Forwarder
from support.sending import claimant, people

from airflow_provider_sms.execution.send import failure
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.reporting.summary import Sums
from airflow_provider_sms.sending import sender

pytestmark = pytest.mark.parametrize("ledger_place", ["postgresql"], indirect=True)
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
def send(sender):
    def send(store, task_id, try_number=1, **options):
        ledger = CampaignLedger(store, "c", claimant(try_number, task_id=task_id, host=f"worker-{task_id}"))
        return sender(ledger, post_seconds=0.5, chunk_size=CHUNK, concurrency=1, monotonic=time.monotonic, **options)

    return send


@pytest.fixture
def cut_off(postgres_ledger_url, way, service, send):
    """Run a task whose network is cut once its third request is answered; return its sender and thread."""
    url = postgres_ledger_url.set(host=way.host, port=way.port, query={"connect_timeout": "3"})
    silent = threading.Event()
    opened = []

    def post(messages):
        response = service(messages)
        if len(service.requests) == 3:
            way.cut()
            silent.set()
        return response

    def cut_off():
        opened.append(open_postgres(url))
        sending = send(opened[0], "cut", post=post)
        thread = threading.Thread(target=sending.run, args=([people(COUNT)],))
        thread.start()
        assert silent.wait(PATIENCE)
        return sending, thread

    yield cut_off
    way.speak()
    for each in opened:
        each.close()


def test_a_task_that_meets_lapsed_claims_of_another_is_worth_a_retry(postgres_ledger_url, way, cut_off, service, send):
    """The one that was cut off records its outcome once the network is back, and then nobody is unknown or twice."""
    first, thread = cut_off()
    with closing(open_postgres(postgres_ledger_url)) as store:
        second = send(store, "healthy")
        second.run([people(COUNT)])
        counts = second.counts
        way.speak()
        thread.join(PATIENCE)
        again = send(store, "healthy", 2)
        again.run([people(COUNT)])
    assert (second.error, counts.accepted, counts.unsettled, counts.awaited) == (None, 20, {3: CHUNK}, {3})
    run = SimpleNamespace(campaign="c", options=SimpleNamespace(on_unknown="fail"))
    failed = failure(run, counts, Sums(), None, stopped=False)
    assert (failed.transient, "request 3 may have been sent: claimed by another process" in str(failed)) == (True, True)
    assert (first.counts.accepted, first.counts.unknown) == (30, 0)
    assert (again.error, again.counts.already_sent, again.counts.unknown) == (None, COUNT, 0)
    assert (len(service.taken), service.duplicates) == (COUNT, 0)
