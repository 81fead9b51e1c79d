"""The pages *Deploy* and *The ledger*: their commands and executors, and its SQL on a real server."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from contextlib import closing
from types import SimpleNamespace

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import event, text
from support.checkout import LEDGER, PAGE, bash, block
from support.cluster import _binaries, running_pair, until
from support.keys import request_of
from support.pages import ROOT, blocks
from support.sending import claimant, people

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.hooks.ledger import LOCAL_EXECUTORS, postgres_url, refuse_several_machines
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.postgres import IDLE_SECONDS, WAIT_SECONDS, open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite

TEXT = PAGE.read_text() + LEDGER.read_text()
SQL = {
    each.code.partition("\n")[0].removeprefix("-- "): each.code
    for page in (PAGE, LEDGER)
    for each in blocks(page, "sql")
}
ONE_ROLE = "one role: as superuser"
(SCHEMA,) = re.findall(r"`(CREATE SCHEMA [^`]+)`", TEXT)
(END,) = re.findall(r"`(SELECT to_timestamp[^`]+)`", TEXT)
(STANDBYS,) = re.findall(r"`(SELECT count[^`]+pg_stat_replication[^`]+)`", TEXT)


def test_the_versions_of_the_page_are_tested():
    """The published file that the page names is for the Airflow of the tests, and the file for an older one exists."""
    (version,) = re.findall(r"^`https://\S+/constraints-([\d.]+)/constraints-3\.11\.txt`", TEXT, re.MULTILINE)
    assert f"apache-airflow=={version}\n" in (ROOT / "constraints.txt").read_text()
    (named, file) = re.search(r'apache-airflow==([\d.]+)".* --constraint (\S+)', block("constraints/airflow-")).groups()
    assert f"apache-airflow=={named}\n" in (ROOT / file).read_text()


def executors():
    """Return the executors of the table of kinds of Airflow, with the ledger that the page gives each."""
    rows = re.findall(r"^\| [^|]+ \| (`\w+Executor`[^|]*) \| (\w+)", TEXT, re.MULTILINE)
    return {(name, ledger) for names, ledger in rows for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(("executor", "ledger"), sorted(executors()))
def test_an_executor_takes_the_ledger_of_the_page(executor, ledger):
    """Executors that run tasks on one machine take a file, and all others refuse it."""
    assert len(executors()) == 5
    if ledger == "file":
        assert executor in LOCAL_EXECUTORS
        refuse_several_machines(executor, {})
    else:
        assert ledger == "PostgreSQL"
        with pytest.raises(InputError, match=f"{executor} runs tasks on several machines"):
            refuse_several_machines(executor, {})


def test_the_backup_has_what_was_claimed_last(tmp_path):
    """A backup of a file that a task has open holds its claims; the file alone, copied, does not."""
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "sms_ledger.db"
    with closing(open_sqlite(path)) as store:
        ledger = CampaignLedger(store, "c", claimant())
        chunk = request_of([person.key for person in people(3)], [person.destination for person in people(3)])
        ledger.commit(chunks=[chunk], claim_seconds=60.0)
        done = bash(block("backup("), tmp_path, AIRFLOW_HOME=str(path.parent))
        assert done.returncode == 0, done.stderr
        (tmp_path / "copy.db").write_bytes(path.read_bytes())
    assert _messages(tmp_path / "ledger-backup.db") == 3
    assert _messages(tmp_path / "copy.db") == 0
    assert (tmp_path / "ledger-backup.db").stat().st_mode & 0o777 == 0o600


def _messages(path):
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM sms_message").fetchone()[0]
        except sqlite3.DatabaseError:
            return 0


class Server:
    """A primary that waits for its standby, with the page's role, and a ledger in its database.

    :param primary: of the pair.
    """

    def __init__(self, primary):
        self._primary = primary
        self.socket = primary.socket

    def run(self, role, code, *, database="sms"):
        """Run statements as a role, each in a transaction of its own, and return the rows of the last one."""
        place = {"host": str(self._primary.folder), "user": role, "dbname": database}
        with closing(psycopg.connect(**place, autocommit=True, row_factory=dict_row)) as connection:
            for statement in code:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def query(self, name):
        """Run one of the page's queries."""
        return self.run("postgres", [SQL[name]])

    def url(self, role="sms", database="sms"):
        return self._primary.url(database).set(username=role)


@pytest.fixture(scope="module")
def server(patient_servers):
    """The server with the page's role and database."""
    with running_pair(synchronous=True) as pair:
        server = Server(pair.primary)
        server.run("postgres", statements(ONE_ROLE), database="postgres")
        open_postgres(server.url()).close()
        yield server


@pytest.fixture
def store(server):
    """The ledger, as a task opens it."""
    with closing(open_postgres(server.url())) as store:
        yield store


def statements(name):
    """Return the statements of a block of the page."""
    code = re.sub(r"^--.*$", "", SQL[name], flags=re.MULTILINE)
    return [each.strip() for each in code.split(";") if each.strip()]


def claim(ledger, messages, seconds=60.0):
    chunk = request_of([m.key for m in messages], [m.destination for m in messages])
    return ledger.commit(chunks=[chunk], claim_seconds=seconds)[0].request_id


def end(ledger, request_id, state, **outcome):
    ledger.commit(outcomes=[Outcome(request_id, state, **outcome)])


def test_the_statements_that_pg_monitor_shows_hold_no_number(server, store):
    """The driver psycopg sends values apart from their statement."""
    shown = []

    @event.listens_for(store._engine, "after_cursor_execute")
    def look(*_):
        rows = server.run("postgres", ["SELECT query FROM pg_stat_activity WHERE usename = 'sms'"])
        shown.extend(row["query"] for row in rows)

    (person,) = people(1, 4_711)
    claim(CampaignLedger(store, "shown", claimant()), [person])
    assert any("INSERT INTO sms_message" in query for query in shown)
    assert [query for query in shown if person.destination in query] == []


def test_a_ledger_is_opened_that_must_wait_for_its_standby(server):
    """Once the role has the right of the page, it sees the state of standbys."""
    (grant,) = re.findall(r"`(GRANT pg_monitor [^`]+)`", TEXT)
    server.run("postgres", [grant])
    with closing(open_postgres(server.url(), require_standby=True)) as store, store.write(7):
        pass
    server.run("postgres", ["REVOKE pg_monitor FROM sms"])


@pytest.mark.parametrize("by", ["postgres", "admin"])
@pytest.mark.parametrize("own_database", [True, False], ids=["database", "schema"])
def test_one_role_makes_its_own_tables(server, own_database, by):
    """In a database of its own, and in a schema of one that exists; made by a superuser and by an administrator."""
    code = statements(ONE_ROLE) if own_database else [*statements(ONE_ROLE)[:-1], SCHEMA]
    database, role = "sms_alone", "sms_other"
    server.run("postgres", ["CREATE ROLE admin LOGIN CREATEDB CREATEROLE"], database="postgres")
    if not own_database:
        server.run("postgres", [f"CREATE DATABASE {database} OWNER {by}"], database="postgres")
    code = [each.replace("DATABASE sms ", f"DATABASE {database} ") for each in code]
    code = [re.sub(r"(ROLE|GRANT|OWNER|AUTHORIZATION) sms\b", rf"\1 {role}", each) for each in code]
    try:
        server.run(by, code, database="postgres" if own_database else database)
        with closing(open_postgres(server.url(role, database))) as store:
            ledger = CampaignLedger(store, "alone", claimant())
            end(ledger, claim(ledger, people(3)), ACCEPTED)
        (found,) = server.run(
            role, ["SELECT schemaname AS name FROM pg_tables WHERE tablename = 'sms_request'"], database=database
        )
        assert found["name"] == ("public" if own_database else role)
    finally:
        gone = [f"DROP DATABASE {database} WITH (FORCE)", f"DROP ROLE {role}", "DROP ROLE admin"]
        server.run("postgres", gone, database="postgres")


@pytest.mark.slow
def test_the_dump_of_the_page_takes_the_ledgers_place(server):
    """With its claims, and without the rows that came later: the page's query says where it ends."""
    with closing(open_postgres(server.url())) as store:
        ledger = CampaignLedger(store, "saved", claimant())
        end(ledger, claim(ledger, people(3)), ACCEPTED)
    dump, restore = (
        block(words).replace("db1.example.com", str(server.socket.parent)) for words in ("pg_dump", "pg_restore")
    )
    _shell(dump, server)
    (ends,) = server.run("postgres", [END])
    with closing(open_postgres(server.url())) as store:
        ledger = CampaignLedger(store, "in the gap", claimant())
        end(ledger, claim(ledger, people(3)), ACCEPTED)
    _shell(restore, server)
    try:
        assert server.run("postgres", [END]) == [ends]
        keys = [each.key for each in people(3)]
        with closing(open_postgres(server.url())) as store:
            later = claimant(5, run_id="later")
            assert {each.state for each in CampaignLedger(store, "saved", later).holders(keys).values()} == {ACCEPTED}
            assert not CampaignLedger(store, "in the gap", later).holders(keys)
    finally:
        back = ("DROP DATABASE sms WITH (FORCE)", "ALTER DATABASE sms_before RENAME TO sms")
        server.run("postgres", back, database="postgres")


def _shell(code, server):
    done = bash(code, server.socket.parent, _binaries())
    assert done.returncode == 0, done.stderr


def test_the_query_of_unknown_requests(server, store):
    """Those whose response was lost, those whose process died, and not those that are under way or closed."""
    ledger = CampaignLedger(store, "spring", claimant())
    for place, state in enumerate((ACCEPTED, NOT_SENT, UNKNOWN)):
        lost = claim(ledger, people(3, 10 * place))
        end(ledger, lost, state)
    claim(ledger, people(2, 40))
    claim(ledger, people(4, 50), seconds=-1.0)
    (row,) = (each for each in server.query("unknown") if each["campaign"] == "spring")
    assert (row["requests"], row["messages"]) == (2, 7)
    ledger.supersede([lost])
    (row,) = (each for each in server.query("unknown") if each["campaign"] == "spring")
    assert (row["requests"], row["messages"]) == (1, 4)


def test_the_query_of_stuck_transactions(server, store):
    """The session that keeps the package waiting for a lock, and not those that wait; no send is listed."""
    soon = SQL["stuck"].replace("20 seconds", "0 seconds")
    assert soon != SQL["stuck"]
    assert max(WAIT_SECONDS, IDLE_SECONDS) < 20

    def wait():
        with store.read() as connection:
            connection.execute(text("SELECT count(*) FROM sms_message"))

    waiting = threading.Thread(target=wait)
    with closing(psycopg.connect(host=str(server.socket.parent), user="sms", dbname="sms")) as person:
        person.execute("LOCK TABLE sms_message")
        waiting.start()
        until(lambda: server.run("postgres", [soon]))
        (row,) = server.run("postgres", [soon])
        assert (row["usename"], row["state"], row["waiting"]) == ("sms", "idle in transaction", 1)
        assert server.query("stuck") == []
        person.rollback()
        waiting.join(10.0)
    assert server.run("postgres", [soon]) == []


def test_the_query_of_standbys(server):
    """The one that commits wait for is counted."""
    assert server.run("postgres", [STANDBYS]) == [{"count": 1}]


def test_the_connection_of_the_page_leads_to_both_servers_by_tls():
    """The package passes the certificate's check on to PostgreSQL's library."""
    (fields,) = (json.loads(each.code) for each in blocks(LEDGER, "json"))
    connection = SimpleNamespace(**{**fields, "conn_id": "sms_ledger", "port": None})
    url = postgres_url(connection, fields["extra"])
    assert url.host == "db1.example.com,db2.example.com"
    assert dict(url.query) == {"sslmode": "verify-full", "sslrootcert": "/etc/ssl/certs/ledger-ca.pem"}
