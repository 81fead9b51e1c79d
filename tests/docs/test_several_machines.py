"""The page *Several machines*: its SQL on a real server, and the package with the roles that it makes."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from contextlib import closing, contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest
from psycopg2.extras import RealDictCursor
from sqlalchemy import Table, event, text
from support.cluster import _binaries, has_pooler, running_pair, running_pooler
from support.forwarder import Forwarder
from support.pages import ROOT, blocks
from support.sending import claimant
from support.sending import people as persons

from airflow_provider_sms.cli.main import main
from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.hooks.ledger import postgres_url
from airflow_provider_sms.ledger import schema
from airflow_provider_sms.ledger.account_history import record_reading
from airflow_provider_sms.ledger.approvals import note_question
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.balances import forget_balances, record_balance
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import adopt, answer, ask, resolve
from airflow_provider_sms.ledger.forget import find_number, forget_number
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.pauses import pause, resume
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.progress import note_progress
from airflow_provider_sms.ledger.purge import forget, forget_claimants, old_campaigns
from airflow_provider_sms.ledger.reader import read_postgres
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.monitoring.campaigns import find_campaign

PAGE = ROOT / "docs" / "several-machines.md"
SQL = {block.code.partition("\n")[0].removeprefix("-- "): block.code for block in blocks(PAGE, "sql")}
ROLES = {"sms_owner", "sms_task", "sms_page", "sms_purge", "sms_monitor"}
OF_OWNER = {"open.py", "schema.py"}
OF_FILES = {"sqlite.py", "clocks.py"}
OF_PURGE = {"purge.py", "balances.py"}


def statements(name):
    """Return the statements of a block of the page."""
    code = re.sub(r"^--.*$", "", SQL[name], flags=re.MULTILINE)
    return [each.strip() for each in code.split(";") if each.strip()]


class Server:
    """The page's server: a primary that waits for its standby, with the page's roles, and a ledger in its database.

    :param primary: of the pair.
    """

    def __init__(self, primary):
        self._primary = primary
        self.socket = primary.socket

    def run(self, role, code, *, database="sms"):
        """Run statements as a role, each in a transaction of its own, and return the rows of the last one."""
        connection = psycopg2.connect(host=str(self._primary.folder), user=role, dbname=database)
        with closing(connection), connection.cursor(cursor_factory=RealDictCursor) as cursor:
            connection.autocommit = True
            for statement in code:
                cursor.execute(statement)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []

    def query(self, name, role="sms_monitor"):
        """Run one of the page's queries."""
        return self.run(role, [SQL[name]])

    def url(self, role, database="sms"):
        return self._primary.url(database).set(username=role)

    @contextmanager
    def open(self, role, **options):
        """Open the ledger as a role."""
        with closing(open_postgres(self.url(role), **options)) as store:
            yield store


@pytest.fixture(scope="module")
def bare():
    """The server with the page's roles and schema, and no table yet."""
    with running_pair(synchronous=True) as pair:
        server = Server(pair.primary)
        server.run("postgres", statements("roles: as superuser"), database="postgres")
        server.run("postgres", statements("schema: as superuser, in the new database"))
        try:
            open_postgres(server.url("sms_task")).close()
        except LedgerError as error:
            server.refusal = str(error)
        yield server


@pytest.fixture(scope="module")
def server(bare):
    """The server with a ledger, which its owner has made."""
    open_postgres(bare.url("sms_owner")).close()
    bare.run("sms_owner", statements("rights: as sms_owner"))
    return bare


@pytest.fixture
def store(server):
    """The ledger, as a task opens it."""
    with server.open("sms_task") as store:
        yield store


def claim(ledger, messages, take_over=None, seconds=60.0):
    chunk = Chunk([m.key for m in messages], [m.destination for m in messages], take_over or {})
    return ledger.commit(chunks=[chunk], claim_seconds=seconds)[0].request_id


def end(ledger, request_id, state, **outcome):
    ledger.commit(outcomes=[Outcome(request_id, state, **outcome)])


def use(store, name):
    """Do everything in a campaign that tasks, pages and commands do, and that no purge does."""
    who = claimant(run_id=name)
    first = register(store, who)
    note_progress(store, name, first, "sending", conn_id="sms_default", total=9, done=0)
    ledger = CampaignLedger(store, name, who, claimant_id=first, cap=FrequencyCap(name, 60.0))
    a, b, c, d, e = ([person] for person in persons(5))
    end(ledger, claim(ledger, a), ACCEPTED, messages=1)
    end(ledger, claim(ledger, b), NOT_SENT)
    unknown = claim(ledger, b)
    end(ledger, unknown, UNKNOWN, reason="read timeout")
    # All of it is held by others, so nothing of the request is left.
    assert claim(CampaignLedger(store, name, claimant(2, run_id=name)), a) is None
    again = claim(ledger, b, {b[0].key: unknown})
    end(ledger, again, NOT_SENT)
    note_question(store, name, "a plan", claimant_id=first, messages=9)
    ask(store, name, who, first, [unknown])
    answer(store, who, "fail", "ann")
    lost = claim(ledger, c)
    end(ledger, lost, UNKNOWN)
    resolve(store, lost, NOT_SENT, "ann")
    end(ledger, lost, ACCEPTED, chunk=Chunk([c[0].key], [c[0].destination]), response="{}")
    pause(store, name, "ann")
    resume(store, name, "ann")
    record_balance(store, name, Decimal(100))
    record_reading(store, name, Decimal(100), store.clock())
    adopt(store, who)
    note_progress(store, name, first, "ended")
    end(ledger, claim(ledger, d), ACCEPTED, messages=1)
    digits = e[0].destination
    end(ledger, claim(ledger, e), ACCEPTED, messages=1)
    assert forget_number(store, digits, find_number(store, digits)).messages


def changed_tables(statement):
    """Return what a statement needs beside SELECT: pairs of a right and a table."""
    found = {
        (verb.partition(" ")[0].upper(), table)
        for verb, table in re.findall(r"\b(INSERT INTO|UPDATE|DELETE FROM) (sms_\w+)", statement, re.IGNORECASE)
    }
    if "ON CONFLICT" in statement and "DO UPDATE" in statement:
        found |= {("UPDATE", table) for verb, table in found if verb == "INSERT"}
    if re.search(r"FOR (KEY SHARE|UPDATE)", statement):
        found |= {("UPDATE", table) for table in re.findall(r"FROM (sms_\w+)", statement)}
    return found


def granted(server, role):
    """Return the rights of a role beside SELECT, of whole tables and of columns."""
    rows = []
    for kind in ("column", "table"):
        query = (
            f"SELECT privilege_type AS name, table_name AS at FROM information_schema.role_{kind}_grants "
            f"WHERE grantee = '{role}' AND table_schema = 'sms'"
        )
        rows += server.run("postgres", [query])
    return {(row["name"], row["at"]) for row in rows if row["name"] != "SELECT"}


@pytest.mark.skipif(not has_pooler(), reason="pgbouncer is not installed")
def test_a_pooler_between_hands_out_the_path_of_the_database(server):
    """In mode transaction the ledger is found by the database's own search_path, and options are refused."""
    with Forwarder(server.socket) as way, running_pooler(way) as pooler:
        pooled = server.url("sms_task").set(query={"host": str(pooler.folder)})
        with closing(open_postgres(pooled)) as store:
            use(store, "pooled")
        with pytest.raises(LedgerError, match="unsupported startup parameter"):
            open_postgres(pooled.update_query_dict({"options": "-c search_path=sms"}))


def test_the_page_makes_the_roles_that_it_names(server):
    """Its table and its SQL have the same ones, and none may create a table but the owner."""
    table = set(re.findall(r"^\| `(sms_\w+)` \|", PAGE.read_text(), re.MULTILINE))
    made = {row["rolname"] for row in server.run("postgres", ["SELECT rolname FROM pg_roles WHERE rolname ~ '^sms_'"])}
    assert table == made == ROLES
    may_create = {
        role
        for role in ROLES
        if server.run("postgres", [f"SELECT has_schema_privilege('{role}', 'sms', 'CREATE') AS may"])[0]["may"]
    }
    assert may_create == {"sms_owner"}
    for role in ROLES - {"sms_owner"}:
        with pytest.raises(psycopg2.Error, match="permission denied"):
            server.run(role, ["CREATE TABLE public.sms_ledger_version (version int)"])


def test_a_task_that_may_not_create_the_tables_says_who_does(bare, server):
    """It makes no second ledger, and its error is the one on the page."""
    (shown,) = re.findall(r"^PostgreSQL, database sms .*$", PAGE.read_text(), re.MULTILINE)
    assert re.sub(r"at .*?: the", "at HOST: the", bare.refusal) == re.sub(r"at .*?: the", "at HOST: the", shown)


def test_a_task_that_may_not_upgrade_the_tables_says_who_does(server):
    """An older ledger stays as it is, until its owner upgrades it."""
    server.run("sms_owner", [f"UPDATE sms_ledger_version SET version = {SCHEMA_VERSION - 1}"])
    with pytest.raises(LedgerError, match="Let their owner run airflow-sms ledger migrate"), server.open("sms_task"):
        pass
    with server.open("sms_owner"):
        pass
    assert server.query("version") == [{"version": SCHEMA_VERSION}]


def test_the_role_of_tasks_may_do_what_tasks_do_and_no_more(server, store):
    """Whatever a task, a page or a command changes is granted, and nothing else is."""
    needed = set()

    @event.listens_for(store._engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_):
        needed.update(changed_tables(statement))

    use(store, "rights")
    assert granted(server, "sms_task") == needed


def test_a_task_sends_with_the_role_of_tasks(server, send, people, monkeypatch, capsys):
    """A whole task of Airflow; and a command shows with the role of pages what it did."""
    for conn_id, role in (("SMS_LEDGER", "sms_task"), ("SMS_LEDGER_PAGE", "sms_page")):
        fields = {"conn_type": "postgres", "host": server.url(role).query["host"], "schema": "sms", "login": role}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id}", json.dumps(fields))
    options = {"campaign": "whole", "ledger_conn_id": "sms_ledger", "check_balance": True}
    ran = send(people(250), campaign_group="g", min_interval=timedelta(days=1), **options)
    assert (ran.state, ran.summary["accepted"]) == ("success", 250)
    again = send(people(250), campaign_group="g", min_interval=timedelta(days=1), **options)
    assert (again.state, again.summary["already_sent"]) == ("success", 250)
    capsys.readouterr()
    main(["ledger", "status", "whole", "--ledger-conn-id", "sms_ledger_page", "-o", "json"])
    assert json.loads(capsys.readouterr().out)[0]["messages_accepted"] == "250"


def test_each_table_that_the_ledgers_code_changes_is_granted(server):
    """A statement that is added to the package needs its right on the page."""
    rights = {role: granted(server, role) for role in ("sms_task", "sms_purge")}
    tables = {name: table.name for name, table in vars(schema).items() if isinstance(table, Table)}
    for path in sorted((ROOT / "airflow_provider_sms" / "ledger").glob("*.py")):
        if path.name in OF_OWNER | OF_FILES:
            continue
        may = rights["sms_task"] | (rights["sms_purge"] if path.name in OF_PURGE else set())
        for verb, name in re.findall(r"\b(insert|update|delete)\((\w+)\)", path.read_text()):
            if name in tables:
                assert (verb.upper(), tables[name]) in may, f"{path.name}: {verb}({name})"


def test_the_role_of_tasks_deletes_no_campaign(server, store):
    """A purge by it fails, and nothing is forgotten."""
    ledger = CampaignLedger(store, "kept", claimant())
    end(ledger, claim(ledger, persons(3)), ACCEPTED)
    (old,) = [each for each in old_campaigns(store, store.clock() + 60) if each.name == "kept"]
    with pytest.raises(LedgerError, match="permission denied for table sms_campaign"):
        forget(store, old)
    assert len(ledger.holders([person.key for person in persons(3)])) == 3


def test_the_role_of_purges_forgets(server, quiet):
    """Campaigns, balances and attempts; a purge needs what a task needs, too."""
    with server.open("sms_purge") as store:
        use(store, "old")
        for row in server.run("postgres", ["SELECT id FROM sms.sms_request WHERE state = 'unknown'"]):
            resolve(store, row["id"], ACCEPTED, "ann")
        for old in old_campaigns(store, store.clock() + 60):
            forget(store, old)
        assert forget_balances(store, store.clock() + 60) >= 1
        assert forget_claimants(store, store.clock() + 60) >= 1
    left = {
        table: server.run("postgres", [f"SELECT count(*) AS rows FROM sms.{table}"])[0]["rows"]
        for table in schema.metadata.tables.keys() - {"sms_ledger_version", "sms_contact_group"}
    }
    assert {table: rows for table, rows in left.items() if rows} == {}


def test_the_role_of_pages_reads_and_changes_nothing(server, store):
    """A page shows the campaign, a command its state; a button fails."""
    use(store, "read")
    with closing(read_postgres(server.url("sms_page"))) as reader, reader.read() as connection:
        campaign_id = connection.execute(text("SELECT id FROM sms_campaign WHERE name = 'read'")).scalar()
    with closing(read_postgres(server.url("sms_page"))) as reader:
        assert find_campaign(reader, campaign_id).name == "read"
    with server.open("sms_page") as pages:
        with pages.read() as connection:
            for table in schema.metadata.tables:
                connection.execute(text(f"SELECT * FROM {table}"))
        with pytest.raises(LedgerError, match="permission denied for table sms_pause"):
            pause(pages, "read", "ann")
        with pytest.raises(LedgerError, match="permission denied"):
            claim(CampaignLedger(pages, "read", claimant(9)), persons(1, 50))
    assert granted(server, "sms_page") == granted(server, "sms_monitor") == set()


def test_the_role_of_queries_sees_no_number(server):
    """It may read counts and times, and neither numbers nor the service's words."""
    for column in ("sms_message.destination", "sms_contact.destination", "sms_request.response", "sms_request.reason"):
        table, name = column.split(".")
        with pytest.raises(psycopg2.Error, match="permission denied"):
            server.run("sms_monitor", [f"SELECT {name} FROM {table}"])


def test_a_ledger_is_opened_that_must_wait_for_its_standby(server):
    """The roles that write see the state of standbys."""
    for role in ("sms_owner", "sms_task", "sms_purge"):
        with server.open(role, require_standby=True) as store, store.write(7):
            pass


@pytest.mark.parametrize("name", [name for name in SQL if name.startswith("one role")])
def test_one_role_makes_its_own_tables(bare, name):
    """In a database of its own, and in a schema of one that exists; PostgreSQL finds it by the role's name."""
    own_database = name == "one role: as superuser"
    database = "sms_alone" if own_database else "somebodys"
    if not own_database:
        bare.run("postgres", [f"CREATE DATABASE {database}"], database="postgres")
    code = [each.replace("DATABASE sms ", f"DATABASE {database} ") for each in statements(name)]
    bare.run("postgres", code, database="postgres" if own_database else database)
    try:
        with closing(open_postgres(bare.url("sms", database))) as store:
            use(store, "alone")
        (found,) = bare.run(
            "sms", ["SELECT schemaname AS name FROM pg_tables WHERE tablename = 'sms_request'"], database=database
        )
        assert found["name"] == ("public" if own_database else "sms")
    finally:
        bare.run("postgres", [f"DROP DATABASE {database} WITH (FORCE)", "DROP ROLE sms"], database="postgres")


def test_the_dump_of_the_page_is_a_ledger_again(server, store, tmp_path):
    """With its rights and its claims: whoever was texted before it is not texted again."""
    use(store, "saved")
    (code,) = [block.code for block in blocks(PAGE, "sh") if "pg_dump" in block.code]
    place = f"host={server._primary.folder} "
    code = code.replace("host=db1.example.com ", place).replace("ledger.dump", str(tmp_path / "ledger.dump"))
    dump, restore = (line.strip() for line in code.splitlines())
    _shell(dump)
    server.run("postgres", ["CREATE DATABASE restored OWNER sms_owner"], database="postgres")
    server.run("postgres", ["ALTER DATABASE restored SET search_path = sms"], database="postgres")
    _shell(restore.replace("dbname=sms ", "dbname=restored "))
    server.run("postgres", ["GRANT CONNECT ON DATABASE restored TO sms_task"], database="postgres")
    with closing(open_postgres(server.url("sms_task", "restored"))) as restored:
        first = persons(1)
        ledger = CampaignLedger(restored, "saved", claimant(5, run_id="later"))
        (held,) = ledger.holders([first[0].key]).values()
        assert held.state == ACCEPTED
    server.run("postgres", ["DROP DATABASE restored WITH (FORCE)"], database="postgres")


def _shell(line):
    command, rest = line.split(" ", 1)
    done = subprocess.run(f"{_binaries() / command} {rest}", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def quiet(server):
    """The server without rows of other tests."""
    tables = ", ".join(schema.metadata.tables.keys() - {"sms_ledger_version"})
    server.run("sms_owner", [f"TRUNCATE {tables}"])
    return server


def test_the_query_of_unknown_requests(quiet, store):
    """Those whose response was lost, those whose process died, and not those that are under way or closed."""
    ledger = CampaignLedger(store, "spring", claimant())
    for place, state in enumerate((ACCEPTED, NOT_SENT, UNKNOWN)):
        lost = claim(ledger, persons(3, 10 * place))
        end(ledger, lost, state)
    claim(ledger, persons(2, 40))
    claim(ledger, persons(4, 50), seconds=-1.0)
    (row,) = quiet.query("unknown")
    assert (row["campaign"], row["requests"], row["messages"]) == ("spring", 2, 7)
    claim(ledger, persons(3, 20), {message.key: lost for message in persons(3, 20)})
    (row,) = quiet.query("unknown")
    assert (row["requests"], row["messages"]) == (1, 4)


def test_the_query_of_silent_attempts(quiet, store):
    """A busy one without a word for five minutes, unless a later attempt of its task has begun."""
    for run, age in (("gone", 400), ("alive", 10), ("replaced", 400), ("done", 400)):
        first = register(store, claimant(run_id=run))
        note_progress(store, "spring", first, "ended" if run == "done" else "sending")
        quiet.run(
            "sms_owner",
            [f"UPDATE sms_progress SET updated_at = updated_at - {age} WHERE claimant_id = {first}"],
        )
    register(store, claimant(2, run_id="replaced"))
    assert [(row["run_id"], row["host"], row["state"]) for row in quiet.query("silent")] == [("gone", "h", "sending")]


def test_the_query_of_paused_campaigns(quiet, store):
    """Only while the pause holds."""
    for name in ("spring", "autumn"):
        claim(CampaignLedger(store, name, claimant()), persons(1))
        pause(store, name, "ann")
    resume(store, "autumn", "ann")
    assert [(row["campaign"], row["paused_by"]) for row in quiet.query("paused")] == [("spring", "ann")]


def test_the_query_of_stuck_transactions(quiet, store):
    """A session that waits for a lock, and the one that holds it."""
    held, release = threading.Event(), threading.Event()

    def hold():
        with store.write(7):
            held.set()
            release.wait(10.0)

    holding = threading.Thread(target=hold)
    holding.start()
    held.wait(10.0)
    try:
        code = SQL["stuck"].replace("30 seconds", "0 seconds")
        (row,) = quiet.run("sms_monitor", [code])
        assert (row["usename"], row["state"]) == ("sms_task", "idle in transaction")
        assert quiet.query("stuck") == []
    finally:
        release.set()
        holding.join(10.0)


def test_the_query_of_connections(quiet, store):
    """The package's are told by their name."""
    with store.read():
        (row,) = quiet.query("connections")
    assert 1 <= row["of_the_package"] < row["all_clients"] < row["most"]


def test_the_query_of_standbys(quiet):
    """The one that commits wait for is counted."""
    (row,) = quiet.query("standbys")
    assert (row["synchronous"], row["all_standbys"]) == (1, 1)
    assert row["bytes_behind"] is not None


def test_the_query_of_sizes(quiet, store):
    """Both large tables, with their indexes."""
    rows = quiet.query("size")
    assert [row["name"] for row in rows] == ["sms_message", "sms_request"]
    assert all(row["bytes"] > 0 for row in rows)


def test_the_query_of_the_rate(quiet, store):
    """Messages of the last five minutes, and the seconds that their requests took."""
    ledger = CampaignLedger(store, "spring", claimant())
    for place in range(3):
        end(ledger, claim(ledger, persons(100, 100 * place)), ACCEPTED, messages=100)
    (row,) = quiet.query("rate")
    assert (round(row["messages_a_second"] * 300), round(row["requests_a_second"] * 300)) == (300, 3)
    assert 0 <= row["seconds_to_respond"] < 60


def test_the_query_of_balances(quiet, store):
    """The last one of each connection; a post-paid account has none."""
    for conn_id, amount in (("a", Decimal("10.5")), ("b", None), ("a", Decimal("9.25"))):
        record_balance(store, conn_id, amount)
    assert [(row["conn_id"], row["credits"]) for row in quiet.query("balance")] == [("a", Decimal("9.25")), ("b", None)]


def test_each_query_of_the_page_has_its_test():
    """A query that nobody runs is one that nobody knows to work."""
    tested = set(re.findall(r'(?:query\(|SQL\[|statements\()"([^"]+)"', Path(__file__).read_text()))
    assert {name for name in SQL if name not in tested and not name.startswith("one role")} == set()


def test_the_connection_of_the_page_leads_to_both_servers_by_tls():
    """The package passes the certificate's check on to PostgreSQL's library."""
    (code,) = [block.code for block in blocks(PAGE, "sh") if "AIRFLOW_CONN_SMS_LEDGER='{\n" in block.code]
    fields = json.loads(re.search(r"AIRFLOW_CONN_SMS_LEDGER='(.*)'", code, re.DOTALL)[1])
    connection = SimpleNamespace(**{**fields, "conn_id": "sms_ledger", "port": None})
    url = postgres_url(connection, fields["extra"])
    assert url.host == "db1.example.com,db2.example.com"
    assert dict(url.query) == {"sslmode": "verify-full", "sslrootcert": "/etc/ssl/certs/ledger-ca.pem"}
