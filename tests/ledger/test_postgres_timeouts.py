from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import text
from support.forwarder import Forwarder
from support.sending import Clock, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger import postgres
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.postgres import open_postgres

WAIT = 2.0
"""Seconds that a statement of these ledgers may take."""


@pytest.fixture
def way(postgres_url):
    """The network between the ledger and its server."""
    with Forwarder(f"{postgres_url.query['host']}/.s.PGSQL.5432") as way:
        yield way


@pytest.fixture
def url(postgres_url, way):
    """The ledger's database by way of the network."""
    return postgres_url.set(host=way.host, port=way.port, query={"connect_timeout": "2"})


@pytest.fixture
def store(url):
    with closing(open_postgres(url)) as store:
        store.patience = Patience(0.0)
        yield store


def file_of(connection):
    return connection.connection.dbapi_connection.fileno()


def write(store, *statements):
    with store.write(7) as connection:
        for each in statements:
            connection.execute(text(each))


def test_the_ledger_is_written_to_again_once_the_network_is_back(store, way):
    """A cut connection ends a transaction, not the ledger."""
    with pytest.raises(LedgerError), store.write(7):
        way.cut()
    way.speak()
    write(store, "INSERT INTO sms_campaign (name, created_at) VALUES ('after', 1)")
    with store.read() as connection:
        assert connection.execute(text("SELECT name FROM sms_campaign WHERE name = 'after'")).scalar() == "after"


def test_a_send_ends_when_its_ledger_is_cut_off(store, url, way, service, sender, enter, caplog):
    """What is in flight is awaited and stands in the log; the next try texts nobody of them again."""

    def cut(service, messages, number):
        way.cut()
        return service.take(messages, number)

    service.script = [None, None, cut]
    clock = Clock(time.time())
    store.patience = Patience(1.0)
    send = sender(enter(into=store, clock=clock), concurrency=1)
    send.run([people(100)])
    assert isinstance(send.error, LedgerError)
    assert "request 3 is accepted, event id 9007199254740995" in caplog.text
    way.speak()
    clock.now += 1000.0
    with closing(open_postgres(url)) as again:
        ledger = enter(2, into=again, clock=clock)
        ledger.lapse()
        sender(ledger).run([people(100)])
    assert (service.duplicates, len(service.taken)) == (0, 100)


@pytest.mark.slow
def test_a_wait_for_others_is_longer_than_one_for_a_statement(url, monkeypatch):
    """A lock that others hold may take longer than a statement; whoever gets it in the end commits as ever."""
    monkeypatch.setattr(postgres, "WAIT_SECONDS", WAIT)
    held, release = threading.Event(), threading.Event()
    with closing(open_postgres(url)) as store, closing(open_postgres(url)) as other:

        def hold():
            with store.write(7):
                held.set()
                release.wait(10.0)

        holding = threading.Thread(target=hold)
        holding.start()
        assert held.wait(10.0)
        began = time.monotonic()
        threading.Timer(1.25 * WAIT, release.set).start()
        write(other, "INSERT INTO sms_campaign (name, created_at) VALUES ('patient', 1)")
        assert time.monotonic() - began > WAIT
        holding.join(10.0)
        with store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1


def test_the_kernel_looks_for_a_machine_that_is_gone(store, way):
    """Keepalives and a bound on what is not acknowledged are set where the connection says nothing of them."""
    with store.read() as connection, socket.socket(fileno=os.dup(file_of(connection))) as duplicate:
        assert duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        found = [
            duplicate.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        ]
    assert found == [5, 5, 3, 20_000]


def test_the_connections_own_words_go_first(url):
    """What the connection says of keepalives is done."""
    own = url.update_query_dict({"keepalives_idle": "77", "tcp_user_timeout": "33000"})
    options = (socket.TCP_KEEPIDLE, socket.TCP_USER_TIMEOUT)
    with (
        closing(open_postgres(own)) as store,
        store.read() as connection,
        socket.socket(fileno=os.dup(file_of(connection))) as duplicate,
    ):
        found = [duplicate.getsockopt(socket.IPPROTO_TCP, option) for option in options]
    assert found == [77, 33_000]
