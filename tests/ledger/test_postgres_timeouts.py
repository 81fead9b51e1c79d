from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from sqlalchemy import text
from support.cluster import until
from support.forwarder import Forwarder
from support.sending import Clock, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger import postgres
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.postgres import open_postgres

WAIT = 0.5
"""Seconds that these ledgers wait for the server."""
BOUND = WAIT + 3.0
"""Seconds after which a wait has lasted too long, also on a busy machine."""


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
    # Its tables are made first: on a busy machine that takes longer than these ledgers wait.
    open_postgres(url).close()
    with closing(impatient(url)) as store:
        yield store


def impatient(url, busy_seconds=WAIT):
    """Open the ledger with short waits; on a busy machine the server may end its first transactions as idle."""
    opened = []
    for _ in range(9):
        with suppress(LedgerError):
            opened.append(open_postgres(url, wait_seconds=WAIT, busy_seconds=busy_seconds))
            break
    store = opened[0] if opened else open_postgres(url, wait_seconds=WAIT, busy_seconds=busy_seconds)
    store.patience = Patience(0.0)
    return store


def file_of(connection):
    return connection.connection.dbapi_connection.fileno()


def seconds_until_it_fails(work):
    """Do something that must fail as the ledger does, and say how long it took."""
    began = time.monotonic()
    with pytest.raises(LedgerError):
        work()
    return time.monotonic() - began


def write(store, *statements):
    with store.write(7) as connection:
        for each in statements:
            connection.execute(text(each))


@pytest.mark.slow
def test_a_silent_network_ends_a_wait_for_a_connection(store, way):
    """A connection that lies in the pool is asked whether it stands, and that, too, is bounded."""
    way.fall_silent()
    # It asks the old connection, then for a new one.
    assert seconds_until_it_fails(lambda: write(store)) < BOUND + 3.0


def test_a_silent_network_ends_a_wait_for_a_statement(store, way):
    """Silence within a transaction raises and is named; nothing of it may be relied on."""

    def fall_silent_within():
        with store.write(7) as connection:
            way.fall_silent()
            connection.execute(text("SELECT 1"))

    began = time.monotonic()
    with pytest.raises(LedgerError, match=r"the server did not respond within 1.5 s"):
        fall_silent_within()
    assert time.monotonic() - began < BOUND


def test_a_silent_network_ends_a_wait_for_the_campaigns_lock(url, postgres_url, way):
    """A lock that another session holds is waited for longer than a statement takes, but not for ever."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with (
        closing(open_postgres(postgres_url)) as other,
        closing(impatient(url, busy_seconds=2.0)) as store,
        other.write(7) as holding,
        ThreadPoolExecutor(1) as threads,
    ):
        seconds = threads.submit(seconds_until_it_fails, lambda: write(store))
        until(lambda: holding.execute(waiting).scalar() == 1)
        way.fall_silent()
        assert seconds.result() < BOUND + 2.0


def test_a_silent_network_ends_a_wait_for_a_commit(store, way):
    """A commit that nobody confirms raises, whatever became of it."""

    def fall_silent_at_the_end():
        with store.write(7):
            way.fall_silent()

    assert seconds_until_it_fails(fall_silent_at_the_end) < BOUND


@pytest.mark.slow
def test_a_silent_network_ends_the_opening(url, way):
    """A server that takes the connection and never answers is an error before anything is claimed."""
    way.fall_silent()
    assert seconds_until_it_fails(lambda: open_postgres(url, wait_seconds=WAIT)) < BOUND + 2.0


def test_the_ledger_is_written_to_again_once_the_network_is_back(store, way):
    """Silence ends a transaction, not the ledger."""
    with pytest.raises(LedgerError), store.write(7):
        way.fall_silent()
    way.speak()
    write(store, "INSERT INTO sms_campaign (name, created_at) VALUES ('after', 1)")
    with store.read() as connection:
        assert connection.execute(text("SELECT name FROM sms_campaign WHERE name = 'after'")).scalar() == "after"


@pytest.mark.slow
@pytest.mark.parametrize("at", ["statement", "commit"])
def test_a_server_that_hangs_ends_the_wait_though_its_machine_answers(store, postgres_url, at):
    """Its kernel acknowledges every packet, so neither keepalives nor TCP's own bound would see it."""

    def freeze():
        pids = []
        try:
            with store.write(7) as connection:
                pids.append(connection.execute(text("SELECT pg_backend_pid()")).scalar())
                os.kill(pids[0], signal.SIGSTOP)
                if at == "statement":
                    connection.execute(text("SELECT 1"))
        finally:
            os.kill(pids[0], signal.SIGCONT)

    assert seconds_until_it_fails(freeze) < BOUND


def test_a_send_ends_when_its_ledger_falls_silent(store, url, way, service, sender, enter, caplog):
    """What is in flight is awaited and stands in the log; the next try texts nobody of them again."""

    def fall_silent(service, messages, number):
        way.fall_silent()
        return service.take(messages, number)

    service.script = [None, None, fall_silent]
    clock = Clock(time.time())
    began = time.monotonic()
    store.patience = Patience(1.0)
    send = sender(enter(into=store, clock=clock), concurrency=1)
    send.run([people(100)])
    # The bound of the statement; one attempt that asks, and one that connects. A busy machine takes longer for each,
    # but not as long as the many attempts that there are otherwise.
    assert time.monotonic() - began < BOUND + 20.0
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
def test_a_wait_for_others_is_longer_than_one_for_the_server(url):
    """A lock that others hold is asked for again and again; whoever gets it in the end commits as ever."""
    # The server also ends a transaction that does nothing for that long, as its process does on a busy machine.
    wait = 4 * WAIT
    held, release = threading.Event(), threading.Event()
    with closing(open_postgres(url)) as store, closing(open_postgres(url, wait_seconds=wait)) as other:

        def hold():
            with store.write(7):
                held.set()
                release.wait(10.0)

        holding = threading.Thread(target=hold)
        holding.start()
        assert held.wait(10.0)
        began = time.monotonic()
        threading.Timer(1.25 * wait, release.set).start()
        write(other, "INSERT INTO sms_campaign (name, created_at) VALUES ('patient', 1)")
        assert time.monotonic() - began > wait
        holding.join(10.0)
        with store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1


@pytest.mark.slow
def test_a_look_at_much_of_the_ledger_may_take_longer(store, way, monkeypatch):
    """A statement that reads for long on a server that lives is no silence, and that of a silent one ends, too."""
    monkeypatch.setattr(postgres, "LOOK_SECONDS", 6 * WAIT)
    with store.read() as connection:
        connection.execute(text(f"SELECT pg_sleep({5 * WAIT})"))

    def fall_silent_within():
        with store.read() as connection:
            way.fall_silent()
            connection.execute(text("SELECT 1"))

    assert seconds_until_it_fails(fall_silent_within) < 6 * WAIT + BOUND


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
