from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.event import listen
from support.cluster import running_node
from support.keys import request_of
from support.postgres import DRIVER
from support.sending import claimant, people

from airflow_provider_sms.exceptions import LedgerBusyError, LedgerError
from airflow_provider_sms.ledger import postgres
from airflow_provider_sms.ledger.backend import BUSY_SECONDS, LEDGER_LOCK, campaign_lock
from airflow_provider_sms.ledger.claims import FINISH_PATIENCE, CampaignLedger
from airflow_provider_sms.ledger.model import UNKNOWN
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


def test_a_commit_is_on_the_servers_disk_before_it_returns(postgres_url, server):
    """A server that was told not to wait for its disk waits for the ledger."""
    server.execute(text(f"ALTER DATABASE {postgres_url.database} SET synchronous_commit = off"))
    store = open_postgres(postgres_url)
    with store.write(7) as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
    store.close()


def test_a_transaction_sees_what_it_waited_for(postgres_url, server):
    """A server that was told to show each transaction one state only shows the ledger what another one committed."""
    server.execute(
        text(f"ALTER DATABASE {postgres_url.database} SET default_transaction_isolation = 'repeatable read'")
    )
    store = open_postgres(postgres_url)
    with store.write(7) as connection:
        assert connection.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
    store.close()


def test_writers_of_a_campaign_wait_for_each_other_only_so_long(postgres_url):
    """A lock that stays raises, and nothing is relied on; another campaign is not kept waiting."""
    store, other = open_postgres(postgres_url), open_postgres(postgres_url, busy_seconds=0.1)
    with store.write(7):
        with other.write(8):
            pass
        with pytest.raises(LedgerBusyError, match=r"kept its lock for 0.1 seconds, and nothing"), other.write(7):
            pass
    store.close()
    other.close()


def test_a_machine_that_vanished_keeps_others_waiting_for_seconds(postgres_url, monkeypatch):
    """The server ends its transaction, which does nothing any more, long before those that wait give up."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", IDLE_SECONDS)
    store = open_postgres(postgres_url)
    with store.write(7) as connection:
        idle = connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar()
    assert (idle, FINISH_PATIENCE, BUSY_SECONDS) == ("5s", 10.0, 60.0)
    store.close()


def test_the_lock_of_an_idle_transaction_goes_to_the_next_one(postgres_url, monkeypatch):
    """Nothing of the idle transaction is kept; if its process lives after all, it is told to try again."""
    store, other = open_postgres(postgres_url), open_postgres(postgres_url)
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.2)

    def vanish():
        with store.write(7) as connection:
            connection.execute(text("INSERT INTO sms_campaign (name, created_at) VALUES ('gone', 1)"))
            with other.write(7) as next_one:
                assert next_one.execute(text("SELECT count(*) FROM sms_campaign")).scalar() == 0

    with pytest.raises(LedgerBusyError, match="this machine left idle for seconds"):
        vanish()
    store.close()
    other.close()


@pytest.mark.slow
def test_a_machine_that_pauses_within_a_claim_claims_again(postgres_url, service, sender, monkeypatch):
    """The server has undone the claim, and nothing was posted: the send goes on, and everybody is texted once."""
    store = open_postgres(postgres_url)
    ledger = CampaignLedger(store, "c", claimant())
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.2)
    insert, pauses = PostgresBackend.insert_messages, [0.6]

    def pause_first(*arguments):
        time.sleep(pauses.pop() if pauses else 0.0)
        return insert(*arguments)

    monkeypatch.setattr(PostgresBackend, "insert_messages", pause_first)
    send = sender(ledger)
    send.run([people(30)])
    assert (send.error, send.counts.accepted, len(service.taken), service.duplicates) == (None, 30, 30, 0)
    store.close()


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


def test_lapsed_claims_are_recorded_in_spite_of_a_pause(postgres_url, pauses):
    """Where the server has undone that write, the send that was to begin with it goes on all the same."""
    store = open_postgres(postgres_url)
    ledger = CampaignLedger(store, "c", claimant())
    ledger.commit(chunks=[request_of([bytes(16)], ["27820000001"])], claim_seconds=0.0)
    time.sleep(0.01)
    pauses.append(campaign_lock("c"))
    ledger.lapse()
    with store.read() as connection:
        assert connection.execute(text("SELECT state FROM sms_request")).scalar() == UNKNOWN
    assert pauses == []
    store.close()


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


def test_the_lock_of_a_server_that_goes_away_is_no_busy_one(postgres_url, server):
    """A wait that ends for another reason is an error as ever: nothing tells that a later one would end well."""
    store, other = open_postgres(postgres_url), open_postgres(postgres_url)
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'"

    def cancel():
        while not server.execute(text(waiting)).scalar():
            pass

    cancelling = threading.Thread(target=cancel)
    with store.write(7):
        cancelling.start()
        with pytest.raises(LedgerError) as caught, other.write(7, patience=3.0):
            pass
    cancelling.join(10.0)
    assert not isinstance(caught.value, LedgerBusyError)
    store.close()
    other.close()


def test_what_can_be_done_without_waits_less(postgres_url):
    """A store that waits a minute for all else gives up sooner where it is told to, and only there."""
    store, other = open_postgres(postgres_url), open_postgres(postgres_url)
    held, release = threading.Event(), threading.Event()

    def hold():
        with store.write(7):
            held.set()
            release.wait(10.0)

    holding = threading.Thread(target=hold)
    holding.start()
    held.wait(10.0)
    with pytest.raises(LedgerBusyError, match=r"for 0.1 seconds"), other.write(7, patience=0.1):
        pass
    threading.Timer(0.3, release.set).start()
    with other.write(7):
        assert release.is_set()
    holding.join(10.0)
    store.close()
    other.close()


def test_a_lost_connection_is_an_error_of_the_ledger_and_then_made_anew(postgres_url, server):
    """What was under way when the server ended the session is not relied on; the next transaction works."""
    store = open_postgres(postgres_url)
    ledger = CampaignLedger(store, "c", claimant())

    def write_while_the_session_ends():
        with store.write(7) as connection:
            server.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name"),
                {"name": "airflow-provider-sms"},
            )
            connection.execute(text("SELECT 1"))

    with pytest.raises(LedgerError):
        write_while_the_session_ends()
    messages = people(3)
    chunk = request_of([m.key for m in messages], [m.destination for m in messages])
    assert list(ledger.commit(chunks=[chunk], claim_seconds=60.0)[0].won) == [0, 1, 2]
    store.close()


def look_up(url, server):
    """Return the conditions on keys of a look-up in a campaign that the server's statistics do not have."""
    store = open_postgres(url)

    def claim(name, number):
        ledger = CampaignLedger(store, name, claimant())
        keys = [person.key for person in people(number)]
        chunk = request_of(keys, [person.destination for person in people(number)])
        ledger.commit(chunks=[chunk], claim_seconds=60.0)
        return ledger, keys

    claim("an earlier one", 20_000)
    server.execute(text("ANALYZE"))
    ledger, keys = claim("a later one", 2000)
    statements = []
    listen(store._engine, "before_cursor_execute", lambda *call: statements.append(call[2:4]))
    holders = ledger.holders([*keys[:500], bytes(16)])
    assert holders.keys() == set(keys[:500])
    ((statement, parameters),) = (each for each in statements if "FROM sms_message" in each[0])
    plan = server.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars().all()
    store.close()
    return [line.partition(":")[0].strip() for line in plan if "message_key =" in line]


def test_messages_are_looked_up_by_their_keys_without_statistics(postgres_url, server):
    """Each key is one search of the unique index; all keys compared with each message would take minutes in the end."""
    assert look_up(postgres_url, server) == ["Index Cond"]


def test_older_servers_look_messages_up_by_their_keys_without_statistics(patient_servers):
    """PostgreSQL before 17 compares a list of keys with each message of a campaign that it takes to be empty."""
    with running_node() as node:
        node.ask("CREATE DATABASE sms")
        engine = create_engine(node.url("sms"), isolation_level="AUTOCOMMIT")
        with engine.connect() as server:
            assert look_up(node.url("sms"), server) == ["Index Cond"]
        engine.dispose()


def test_deadlines_are_by_the_servers_clock(postgres_url):
    """Machines whose clocks differ agree on what time it is."""
    store = open_postgres(postgres_url)
    assert abs(store.clock() - time.time()) < 1.0
    store.close()


def test_a_server_that_is_not_there_is_an_error_without_the_password(tmp_path):
    """The error names neither user nor password."""
    url = make_url(f"{DRIVER}://user:pass-word-1@/x?host={tmp_path}")
    with pytest.raises(LedgerError) as caught:
        open_postgres(url)
    assert "pass-word-1" not in str(caught.value)
