from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import ExitStack, closing

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.event import listen
from support.forwarder import Forwarder
from support.postgres import DRIVER
from support.sending import chunk_of, claim, claimant, people

from airflow_provider_sms.exceptions import LedgerBusyError, LedgerError
from airflow_provider_sms.ledger import postgres
from airflow_provider_sms.ledger.backend import BUSY_SECONDS, LEDGER_LOCK, campaign_lock
from airflow_provider_sms.ledger.claims import FINISH_PATIENCE, CampaignLedger
from airflow_provider_sms.ledger.postgres import PostgresBackend, open_postgres

IDLE_SECONDS = postgres.IDLE_SECONDS
"""As users have it; the tests' own servers wait longer."""


@pytest.fixture
def server(postgres_url):
    """A connection of somebody else's to the ledger's database."""
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def open_it(postgres_url):
    """Open the ledger as one more process."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(closing(open_postgres(postgres_url, **options)))


@pytest.fixture
def store(open_it):
    return open_it()


@pytest.mark.parametrize(
    ("default", "told", "setting", "wanted"),
    [
        ("synchronous_commit", "off", "synchronous_commit", "on"),
        ("default_transaction_isolation", "'repeatable read'", "transaction_isolation", "read committed"),
    ],
)
def test_a_write_is_on_the_disk_and_sees_what_it_waited_for(
    postgres_url, server, open_it, default, told, setting, wanted
):
    """A server that was told not to wait for its disk, or to show one state only, does otherwise for the ledger."""
    server.execute(text(f"ALTER DATABASE {postgres_url.database} SET {default} = {told}"))
    with open_it().write(7) as connection:
        assert connection.execute(text(f"SHOW {setting}")).scalar() == wanted


@pytest.mark.parametrize(("busy_seconds", "patience"), [(0.1, None), (60.0, 0.1)])
def test_writers_of_a_campaign_wait_for_each_other_only_so_long(store, open_it, busy_seconds, patience):
    """A lock that stays raises, and sooner where a write can be done without; another campaign is not kept waiting."""
    other = open_it(busy_seconds=busy_seconds)
    with store.write(7):
        with other.write(8):
            pass
        with (
            pytest.raises(LedgerBusyError, match=r"kept its lock for 0.1 seconds, and nothing"),
            other.write(7, patience=patience),
        ):
            pass


def test_a_machine_that_vanished_keeps_others_waiting_for_seconds(store, monkeypatch):
    """The server ends its transaction, which does nothing any more, long before those that wait give up."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", IDLE_SECONDS)
    with store.write(7) as connection:
        idle = connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar()
    assert (idle, FINISH_PATIENCE, BUSY_SECONDS) == ("5s", 10.0, 60.0)


def test_the_lock_of_an_idle_transaction_goes_to_the_next_one(store, open_it, monkeypatch):
    """Nothing of the idle transaction is kept; if its process lives after all, it is told to try again."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.2)

    def vanish():
        with store.write(7) as connection:
            connection.execute(text("INSERT INTO sms_campaign (name, created_at) VALUES ('gone', 1)"))
            with open_it().write(7) as next_one:
                assert next_one.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 0

    with pytest.raises(LedgerBusyError, match="this machine left idle for seconds"):
        vanish()


@pytest.fixture
def pauses(monkeypatch):
    """Numbers of locks: the first transaction that holds one of them then does nothing until the server ends it."""
    numbers, hold = [], PostgresBackend._lock

    def pause_first(backend, connection, number, *arguments, **options):
        pauses = number in numbers
        monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.2 if pauses else 3600.0)
        hold(backend, connection, number, *arguments, **options)
        if pauses:
            numbers.remove(number)
            time.sleep(0.6)

    monkeypatch.setattr(PostgresBackend, "_lock", pause_first)
    return numbers


@pytest.mark.parametrize("lock", [LEDGER_LOCK, campaign_lock("c")], ids=["register", "enter"])
def test_an_attempt_begins_in_spite_of_a_pause(postgres_url, lock, pauses):
    """Where the server has undone its first writes, nothing of them has happened, so the attempt tries them again."""
    store = open_postgres(postgres_url)
    pauses.append(lock)
    CampaignLedger(store, "c", claimant())
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_attempt")).scalar() == 1
        assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1
    assert pauses == []
    store.close()


def test_the_lock_of_a_server_that_goes_away_is_no_busy_one(store, open_it, server):
    """A wait that ends for another reason is an error as ever: nothing tells that a later one would end well."""
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'"

    def cancel():
        while not server.execute(text(waiting)).scalar():
            pass

    cancelling = threading.Thread(target=cancel)
    with store.write(7):
        cancelling.start()
        with pytest.raises(LedgerError) as caught, open_it().write(7, patience=3.0):
            pass
    cancelling.join(10.0)
    assert not isinstance(caught.value, LedgerBusyError)


def test_a_lost_connection_is_an_error_of_the_ledger_and_then_made_anew(store, server):
    """What was under way when the server ended the session is not relied on; the next transaction works."""
    ledger = CampaignLedger(store, "c", claimant())
    name = "airflow-provider-sms"
    ended = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name")

    def write_while_the_session_ends():
        with store.write(7) as connection:
            server.execute(ended, {"name": name})
            connection.execute(text("SELECT 1"))

    with pytest.raises(LedgerError):
        write_while_the_session_ends()
    assert list(ledger.commit(chunks=[chunk_of(people(3))], claim_seconds=60.0)[0].won) == [0, 1, 2]


def test_messages_are_looked_up_by_their_keys_without_statistics(store, server):
    """Each key is one search of the unique index; all keys compared with each message would take minutes in the end.

    PostgreSQL before 17 does that for a list of keys in a campaign that it takes to be empty.
    """

    def claim_many(name, number):
        ledger, messages = CampaignLedger(store, name, claimant()), people(number)
        claim(ledger, messages)
        return ledger, [person.key for person in messages]

    claim_many("an earlier one", 20_000)
    server.execute(text("ANALYZE"))
    ledger, keys = claim_many("a later one", 2000)
    statements = []
    listen(store._engine, "before_cursor_execute", lambda *call: statements.append(call[2:4]))
    assert ledger.holders([*keys[:500], bytes(16)]).keys() == set(keys[:500])
    ((statement, parameters),) = (each for each in statements if "FROM sms_message" in each[0])
    plan = server.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars().all()
    assert [line.partition(":")[0].strip() for line in plan if "message_key =" in line] == ["Index Cond"]


def test_a_server_that_is_not_there_is_an_error_without_the_password(tmp_path):
    """The error names neither user nor password."""
    url = make_url(f"{DRIVER}://user:pass-word-1@/x?host={tmp_path}")
    with pytest.raises(LedgerError) as caught:
        open_postgres(url)
    assert "pass-word-1" not in str(caught.value)


@pytest.mark.slow
def test_a_wait_for_others_is_longer_than_one_for_a_statement(store, open_it, monkeypatch):
    """A lock that others hold may take longer than a statement; whoever gets it in the end commits as ever."""
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 2.0)
    other, held, release = open_it(), threading.Event(), threading.Event()

    def hold():
        with store.write(7):
            held.set()
            release.wait(10.0)

    holding = threading.Thread(target=hold)
    holding.start()
    assert held.wait(10.0)
    began = time.monotonic()
    threading.Timer(2.5, release.set).start()
    with other.write(7) as connection:
        connection.execute(text("INSERT INTO sms_campaign (name, created_at) VALUES ('patient', 1)"))
    assert time.monotonic() - began > 2.0
    holding.join(10.0)
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 1


KEEPALIVES = {
    "keepalives_idle": (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5, 77),
    "keepalives_interval": (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5, 5),
    "keepalives_count": (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3, 3),
    "tcp_user_timeout": (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000, 33_000),
    "keepalives": (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1, 1),
}


@pytest.mark.parametrize("has_own_words", [False, True])
def test_the_kernel_looks_for_a_machine_that_is_gone(postgres_url, has_own_words):
    """Keepalives and a bound on what is not acknowledged are set, unless the connection says otherwise."""
    own_words = {"keepalives_idle": "77", "tcp_user_timeout": "33000"} if has_own_words else {}
    with Forwarder(f"{postgres_url.query['host']}/.s.PGSQL.5432") as way, ExitStack() as opened:
        url = postgres_url.set(host=way.host, port=way.port, query=own_words)
        connection = opened.enter_context(opened.enter_context(closing(open_postgres(url))).read())
        file = os.dup(connection.connection.dbapi_connection.fileno())
        with socket.socket(fileno=file) as duplicate:
            found = {name: duplicate.getsockopt(*option) for name, (*option, _, _) in KEEPALIVES.items()}
    assert found == {name: own if has_own_words else ours for name, (*_, ours, own) in KEEPALIVES.items()}
