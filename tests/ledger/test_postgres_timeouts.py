from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from sqlalchemy import event, text
from support.cluster import until
from support.forwarder import Forwarder
from support.postgres import DRIVERS
from support.sending import Clock, claimant, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.attempts import HighWater, high_water, raised
from airflow_provider_sms.ledger.model import ACCEPTED, Chunk, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.postgres_engine import CONNECT_SECONDS, PING_SECONDS, WAIT_SECONDS
from airflow_provider_sms.ledger.postgres_timeouts import LOOK_SECONDS
from airflow_provider_sms.sending import flush

WAIT = 0.5
"""Seconds that these ledgers wait for the server."""
BOUND = WAIT + 2.0
"""Seconds after which a wait has lasted too long, also on a busy machine."""


@pytest.fixture(params=DRIVERS)
def driver(request):
    return f"postgresql+{request.param}"


@pytest.fixture
def way(postgres_url):
    """The network between the ledger and its server."""
    with Forwarder(f"{postgres_url.query['host']}/.s.PGSQL.5432") as way:
        yield way


@pytest.fixture
def url(postgres_url, way, driver):
    """The ledger's database by way of the network."""
    return postgres_url.set(drivername=driver, host=way.host, port=way.port, query={"connect_timeout": "2"})


@pytest.fixture
def store(url):
    # Its tables are made first: on a busy machine that takes longer than these ledgers wait.
    open_postgres(url).close()
    with closing(impatient(url)) as store:
        yield store


def impatient(url, busy_seconds=WAIT):
    """Open the ledger with short waits; on a busy machine the server may end its first transactions as idle."""
    for _ in range(9):
        with suppress(LedgerError):
            return open_postgres(url, wait_seconds=WAIT, busy_seconds=busy_seconds)
    return open_postgres(url, wait_seconds=WAIT, busy_seconds=busy_seconds)


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


def test_a_silent_server_ends_a_wait_within_30_seconds():
    """A call waits in silence for a statement, or for a kept connection's ping and a new one: never for all three."""
    # The time to connect is that of one address, which most host names have.
    assert (PING_SECONDS + LOOK_SECONDS) + CONNECT_SECONDS + (WAIT_SECONDS + LOOK_SECONDS) < 30.0


@pytest.mark.slow
def test_a_silent_network_ends_a_wait_for_a_connection(store, way):
    """A connection that lies in the pool is asked whether it stands, and that, too, is bounded."""
    way.fall_silent()
    # It asks the old connection, then for a new one.
    assert seconds_until_it_fails(lambda: write(store)) < BOUND + 3.0


def test_a_silent_network_ends_a_wait_for_a_statement(store, way):
    """Silence within a transaction raises; nothing of it may be relied on."""

    def fall_silent_within():
        with store.write(7) as connection:
            way.fall_silent()
            connection.execute(text("SELECT 1"))

    assert seconds_until_it_fails(fall_silent_within) < BOUND


def test_a_silent_network_ends_a_wait_for_the_campaigns_lock(url, postgres_url, way):
    """A lock that another session holds is waited for longer than the server, but not once the server is silent."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with (
        closing(open_postgres(postgres_url)) as other,
        closing(impatient(url, busy_seconds=60.0)) as store,
        other.write(7) as holding,
        ThreadPoolExecutor(1) as threads,
    ):
        seconds = threads.submit(seconds_until_it_fails, lambda: write(store))
        until(lambda: holding.execute(waiting).scalar() == 1)
        way.fall_silent()
        assert seconds.result() < BOUND


def test_a_silent_network_ends_a_wait_for_a_commit(store, way):
    """A commit that nobody confirms raises, whatever became of it."""

    def fall_silent_at_the_end():
        with store.write(7):
            way.fall_silent()

    assert seconds_until_it_fails(fall_silent_at_the_end) < BOUND


def test_a_silent_network_ends_a_wait_for_rows(store, way):
    """Rows that come a part at a time are waited for only so long, too."""

    def fall_silent_between():
        with store.read(quick=True) as connection:
            streaming = connection.execution_options(yield_per=10)
            with closing(streaming.execute(text("SELECT generate_series(1, 1000)"))) as rows:
                rows.fetchmany(10)
                way.fall_silent()
                rows.fetchmany(10)

    assert seconds_until_it_fails(fall_silent_between) < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("what", ["first mark", "mark", "report"])
def test_a_silent_network_ends_what_a_task_reads_around_its_send(store, way, enter, what):
    """The high-water mark, and what a row report looks up: no server that hangs keeps the task for minutes."""
    ledger = enter(into=store, clock=None)
    ledger.commit(chunks=[Chunk([bytes(16)], ["27820000001"])], claim_seconds=60.0)
    reads = {
        "first mark": lambda: high_water(store, claimant()),
        "mark": lambda: raised(store, HighWater(), 1),
        "report": lambda: ledger.records([bytes(16)]),
    }
    reads[what]()
    # Not before: a silent connection from the pool is an error before the statement.
    event.listen(store._engine, "before_cursor_execute", lambda *_: way.fall_silent())
    assert seconds_until_it_fails(reads[what]) < BOUND


@pytest.mark.slow
def test_a_silent_network_ends_the_opening(url, way):
    """A server that takes the connection and never answers is an error before anything is claimed."""
    way.fall_silent()
    assert seconds_until_it_fails(lambda: open_postgres(url, wait_seconds=WAIT)) < BOUND + 2.0


@pytest.mark.slow
def test_a_silent_server_is_not_asked_again_at_once(store, way):
    """What a task does after its send, such as its notes, does not wait anew each time."""
    way.fall_silent()
    seconds_until_it_fails(lambda: write(store))
    began = time.monotonic()
    with pytest.raises(LedgerError, match="did not respond a moment ago"):
        write(store)
    assert time.monotonic() - began < BOUND


@pytest.mark.slow
def test_the_last_outcomes_are_recorded_as_soon_as_the_network_is_back(store, way, enter):
    """A send that was told to stop has three seconds for it, and so does not wait until silence may be asked again."""
    ledger = enter(into=store, clock=None)
    (claim,) = ledger.commit(chunks=[Chunk([bytes(16)], ["27820000001"])], claim_seconds=60.0)
    way.fall_silent()
    seconds_until_it_fails(lambda: write(store))
    way.speak()
    with pytest.raises(LedgerError, match="did not respond a moment ago"):
        write(store)
    ledger.finish([Outcome(claim.request_id, ACCEPTED, event_id=1, messages=1)])
    assert ledger.known_events({claim.request_id + 1: 1})


def test_the_error_says_that_the_server_was_silent(store, way):
    """Somebody who reads the log learns what was waited for, and how long."""

    def fall_silent_within():
        with store.write(7) as connection:
            way.fall_silent()
            connection.execute(text("SELECT 1"))

    with pytest.raises(LedgerError, match=r"did not respond within 0.5 seconds"):
        fall_silent_within()


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


@pytest.mark.parametrize("driver", DRIVERS[:1], indirect=True)
def test_a_send_ends_when_its_ledger_falls_silent(store, url, way, service, sender, enter, monkeypatch, caplog):
    """What is in flight is awaited and stands in the log; the next try texts nobody of them again."""
    monkeypatch.setattr(flush, "FLUSH_SECONDS", 1.0)

    def fall_silent(service, messages, number):
        way.fall_silent()
        return service.take(messages, number)

    service.script = [None, None, fall_silent]
    clock = Clock(time.time())
    began = time.monotonic()
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
def test_a_look_at_much_of_the_ledger_may_take_longer(store):
    """A statement that reads for long on a server that lives is no silence."""
    with store.read() as connection:
        connection.execute(text(f"SELECT pg_sleep({3 * WAIT})"))
    with pytest.raises(LedgerError), store.read(quick=True) as connection:
        connection.execute(text(f"SELECT pg_sleep({3 * WAIT})"))


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
