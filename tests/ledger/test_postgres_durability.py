from __future__ import annotations

import logging
import re
import threading
from contextlib import closing
from types import SimpleNamespace

import psycopg
import pytest
from sqlalchemy import text
from support.cluster import running_node, running_pair, until

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.postgres_engine import check_durability

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'"
WARNED = "has 1 standby server and does not wait for it.*texted twice.*synchronous_standby_names"


@pytest.fixture(scope="module")
def synchronous(patient_servers):
    """A primary whose commits wait for its standby."""
    with running_pair(synchronous=True) as pair:
        yield pair


@pytest.fixture(scope="module")
def asynchronous(patient_servers):
    """A primary whose commits wait for nobody."""
    with running_pair(synchronous=False) as pair:
        yield pair


def opened(url, **options):
    return closing(open_postgres(url, **options))


def insert(store, name):
    with store.write(7) as connection:
        connection.execute(text("INSERT INTO sms_campaign (name, created_at) VALUES (:name, 1)"), {"name": name})


@pytest.mark.parametrize("user", ["postgres", "plain"])
def test_a_standby_that_nobody_waits_for_is_warned_of(asynchronous, caplog, user):
    """The log says what a failover does, and which setting keeps it from that; users without rights see it, too."""
    asynchronous.primary.ask(f"CREATE DATABASE of_{user}")
    if user == "plain":
        asynchronous.primary.ask("CREATE ROLE plain LOGIN")
        asynchronous.primary.ask("ALTER DATABASE of_plain OWNER TO plain")
    with caplog.at_level(logging.WARNING), opened(asynchronous.primary.url(f"of_{user}").set(username=user)):
        pass
    (warning,) = caplog.records
    assert re.search(WARNED, warning.message)


def test_a_standby_that_nobody_waits_for_is_refused_where_one_is_required(asynchronous):
    """What is required is not only wished for."""
    with pytest.raises(LedgerError, match=r"require_synchronous_standby.*waits for no standby.*Nothing was sent"):
        open_postgres(asynchronous.primary.url(), require_standby=True)
    opened(asynchronous.primary.url()).__enter__().close()
    with opened(asynchronous.primary.url(), create=False, require_standby=True, read_seconds=10.0) as page:
        assert page.fetch(lambda connection: connection.scalar(text("SELECT version FROM sms_version"))) == 1


def test_a_synchronous_standby_is_good_and_silent(synchronous, caplog):
    """Where commits wait for a standby, nothing is said, and what requires it is content."""
    with caplog.at_level(logging.WARNING), opened(synchronous.primary.url(), require_standby=True):
        pass
    assert caplog.text == ""


def test_a_user_who_may_not_see_the_standby_is_refused_where_one_is_required(synchronous):
    """The error says which right is lacking; with it, the ledger opens."""
    synchronous.primary.ask("CREATE ROLE blind LOGIN")
    synchronous.primary.ask("CREATE DATABASE blind OWNER blind")
    url = synchronous.primary.url("blind").set(username="blind")
    with pytest.raises(LedgerError, match=r"GRANT pg_monitor"):
        open_postgres(url, require_standby=True)
    synchronous.primary.ask("GRANT pg_monitor TO blind")
    with opened(url, require_standby=True):
        pass


def test_a_requirement_holds_for_each_claim(synchronous):
    """A server that is told in mid-send to wait for nobody is not written to any more."""
    primary = synchronous.primary
    with opened(primary.url(), require_standby=True) as store:
        try:
            primary.wait_for_standby("", "async")
            with pytest.raises(LedgerError, match=r"no longer waits for a standby"), store.write(7):
                pass
        finally:
            primary.wait_for_standby("two", "sync")


@pytest.mark.parametrize("level", ["warning", "error"])
def test_a_commit_whose_wait_for_the_standby_is_cancelled_is_no_claim(synchronous, level):
    """The server says so by a warning alone, which a database may be told to keep to itself: it raises all the same."""
    primary = synchronous.primary
    primary.ask(f"ALTER DATABASE postgres SET client_min_messages = {level}")
    with opened(primary.url()) as store:
        synchronous.link.fall_silent()

        def cancel():
            until(lambda: primary.ask(WAITING))
            primary.ask(f"SELECT pg_cancel_backend(pid) FROM ({WAITING}) AS its")

        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        try:
            with pytest.raises(LedgerError, match=r"may not be durable: .*canceling wait for"):
                insert(store, level)
        finally:
            cancelling.join(30.0)
            synchronous.link.speak()
            primary.ask("ALTER DATABASE postgres RESET client_min_messages")


def test_a_standby_is_no_ledger(synchronous):
    """A server in recovery is refused in words, whoever asks for what."""
    with opened(synchronous.primary.url()):
        pass
    ((end,),) = synchronous.primary.ask("SELECT pg_current_wal_lsn()")
    until(lambda: synchronous.standby.ask(f"SELECT pg_last_wal_replay_lsn() >= '{end}'") == [(True,)])
    with pytest.raises(LedgerError, match=r"is a standby, which lags behind its primary.*Connect to the primary"):
        open_postgres(synchronous.standby.url())


def test_of_several_hosts_the_primary_is_taken(synchronous):
    """A connection to a list of hosts leads to the one that can be written to, wherever it stands in the list."""
    hosts = f"{synchronous.standby.folder},{synchronous.primary.folder}"
    url = synchronous.primary.url().set(host=hosts, query={})
    with opened(url) as store, store.read() as connection:
        assert connection.execute(text("SELECT pg_is_in_recovery()")).scalar() is False


def test_a_server_that_does_not_wait_for_its_disk_is_refused():
    """With fsync off, a server forgets claims when its machine fails."""
    with running_node(fsync="off") as node, pytest.raises(LedgerError, match=r"fsync = off.*Set fsync = on"):
        open_postgres(node.url())


def test_a_user_who_may_only_read_is_told_so(postgres_url):
    """The error is in words, and not what the database says of the first statement that writes."""
    place = {"host": postgres_url.query["host"], "user": "postgres", "dbname": "postgres"}
    with psycopg.connect(**place, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {postgres_url.database} SET default_transaction_read_only = on")
    with pytest.raises(LedgerError, match=r"is read-only for this user"):
        open_postgres(postgres_url)


@pytest.mark.parametrize(
    ("waits", "standbys", "words"),
    [
        (False, 0, "waits for no standby"),
        (True, 0, "no synchronous standby attached"),
        (True, 1, "no synchronous standby attached"),
    ],
)
def test_what_is_required_is_there_for_sure(caplog, waits, standbys, words):
    """A standby that is not attached, or not known to be synchronous, is none; where none is, nothing is warned of."""
    row = (True, False, waits, standbys, 0)
    connection = SimpleNamespace(execute=lambda _: SimpleNamespace(one=lambda: row))
    check_durability(connection, "the ledger", require_standby=False)
    assert caplog.text == ""
    with pytest.raises(LedgerError, match=words):
        check_durability(connection, "the ledger", require_standby=True)
