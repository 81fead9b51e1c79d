"""The page *Several machines*: its SQL on a real server, and the package with the roles that it makes."""

from __future__ import annotations

import ast
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
from sqlalchemy import Table, create_engine, event, text
from support.cluster import _binaries, has_pooler, running_pair, running_pooler, until
from support.forwarder import Forwarder
from support.machines.scenarios import SCENARIOS
from support.machines.stage import CHUNK, LONGEST
from support.pages import ROOT, blocks
from support.postgres import DRIVER
from support.sending import claimant
from support.sending import people as persons

from airflow_provider_sms.cli.main import main
from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.hooks.ledger import postgres_url
from airflow_provider_sms.ledger import backend, postgres, postgres_engine, schema
from airflow_provider_sms.ledger.account_history import record_reading
from airflow_provider_sms.ledger.approvals import PlanExtent, note_question
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.balances import forget_balances, record_balance
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import adopt, answer, ask, resolve
from airflow_provider_sms.ledger.forget import find_number, forget_number
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.pauses import pause, resume
from airflow_provider_sms.ledger.postgres import IDLE_SECONDS, open_postgres
from airflow_provider_sms.ledger.progress import note_progress
from airflow_provider_sms.ledger.purge import forget_campaign, forget_claimants, old_campaigns
from airflow_provider_sms.ledger.reader import read_postgres
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.monitoring.campaigns import find_campaign
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.sending.sender import MARGIN_SECONDS
from airflow_provider_sms.service.client import SmsClient

PAGE = ROOT / "docs" / "several-machines.md"
PACKAGE = ROOT / "airflow_provider_sms"
SERVICE = "https://rest.example.com/v1"
SQL = {block.code.partition("\n")[0].removeprefix("-- "): block.code for block in blocks(PAGE, "sql")}
ROLES = {"sms_owner", "sms_task", "sms_page", "sms_purge", "sms_monitor"}
OF_OWNER = {"open.py", "schema.py"}
OF_FILES = {"sqlite.py", "clocks.py"}
OF_PURGE = {"purge.py", "balances.py", "account_history.py"}
BIG = ("sms_message", "sms_request")


def rows_of(heading):
    """Return the rows of the first table behind a heading or another text of the page, without its head, as cells."""
    (_, behind) = PAGE.read_text().split(heading, 1)
    found = re.search(r"^\|.*\n\|[-:| ]+\|\n((?:\|.*\n)+)", behind, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]


def words_of(cell):
    """Return what a cell has as code."""
    return re.findall(r"`([^`]+)`", cell)


def texts_of_the_package():
    """Return each text in the package's code, with a star for each value in it."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [each.value if isinstance(each, ast.Constant) else "*" for each in node.values]
                found.add("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


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
def bare(patient_servers):
    """The server with the page's roles and schema, and no table yet."""
    with running_pair(synchronous=True) as pair:
        server = Server(pair.primary)
        server.run("postgres", statements("roles: as superuser"), database="postgres")
        server.run("postgres", statements("roles that look at standbys: as superuser"), database="postgres")
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
    note_question(store, name, PlanExtent("a plan", 9), claimant_id=first)
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


@pytest.mark.slow
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
    assert json.loads(capsys.readouterr().out)[0]["messages_accepted"] == 250
    main(["ledger", "list", "--ledger-conn-id", "sms_ledger_page", "-o", "json"])
    assert "whole" in {each["campaign"] for each in json.loads(capsys.readouterr().out)}


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
        forget_campaign(store, old)
    assert len(ledger.holders([person.key for person in persons(3)])) == 3


def test_the_role_of_purges_forgets(server, quiet):
    """Campaigns, balances and attempts; a purge needs what a task needs, too."""
    with server.open("sms_purge") as store:
        use(store, "old")
        for row in server.run("postgres", ["SELECT id FROM sms.sms_request WHERE state = 'unknown'"]):
            resolve(store, row["id"], ACCEPTED, "ann")
        for old in old_campaigns(store, store.clock() + 60):
            forget_campaign(store, old)
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


def test_the_roles_that_check_standbys_are_granted_that_in_a_block_of_its_own():
    """Whoever leaves the block out keeps other sessions' statements from DAGs."""
    (monitor,) = [each for each in statements("roles: as superuser") if "pg_monitor" in each]
    assert monitor == "GRANT pg_monitor TO sms_monitor"
    (others,) = statements("roles that look at standbys: as superuser")
    assert set(re.findall(r"sms_\w+", others)) == {"sms_owner", "sms_task", "sms_page"}


@pytest.mark.skipif(DRIVER.endswith("psycopg2"), reason="this driver writes values into its statements")
def test_the_statements_that_pg_monitor_shows_hold_no_number(server, store):
    """The driver psycopg sends values apart from their statement."""
    shown = []

    @event.listens_for(store._engine, "after_cursor_execute")
    def look(*_):
        rows = server.run("sms_monitor", ["SELECT query FROM pg_stat_activity WHERE usename = 'sms_task'"])
        shown.extend(row["query"] for row in rows)

    (person,) = persons(1, 4_711)
    claim(CampaignLedger(store, "shown", claimant()), [person])
    assert any("INSERT INTO sms_message" in query for query in shown)
    assert [query for query in shown if person.destination in query] == []


def test_the_role_of_queries_sees_no_number(server):
    """It may read counts and times, and neither numbers nor the service's words."""
    for column in ("sms_message.destination", "sms_contact.destination", "sms_request.response", "sms_request.reason"):
        table, name = column.split(".")
        with pytest.raises(psycopg2.Error, match="permission denied"):
            server.run("sms_monitor", [f"SELECT {name} FROM {table}"])


def test_a_ledger_is_opened_that_must_wait_for_its_standby(server):
    """The roles that tasks and commands have see the state of standbys."""
    for role in ("sms_owner", "sms_task", "sms_page", "sms_purge"):
        with server.open(role, require_standby=True) as store, store.write(7):
            pass


def test_an_administrator_who_is_no_superuser_makes_roles_and_schema(bare):
    """A managed server has no superuser; the roles get other names, since these exist."""

    def renamed(name):
        code = [each.replace("DATABASE sms", "DATABASE theirs") for each in statements(name)]
        return [re.sub(rf"\b({'|'.join(ROLES)})\b", r"their_\1", each) for each in code]

    bare.run("postgres", ["CREATE ROLE admin LOGIN CREATEDB CREATEROLE"], database="postgres")
    bare.run("postgres", ["GRANT pg_monitor TO admin WITH ADMIN OPTION"], database="postgres")
    try:
        for name in ("roles: as superuser", "roles that look at standbys: as superuser"):
            bare.run("admin", renamed(name), database="postgres")
        bare.run("admin", renamed("schema: as superuser, in the new database"), database="theirs")
        open_postgres(bare.url("their_sms_owner", "theirs")).close()
        bare.run("their_sms_owner", renamed("rights: as sms_owner"), database="theirs")
    finally:
        bare.run("postgres", ["DROP DATABASE IF EXISTS theirs WITH (FORCE)"], database="postgres")
        gone = [f"DROP ROLE IF EXISTS their_{role}" for role in sorted(ROLES)]
        bare.run("postgres", [*gone, "DROP OWNED BY admin", "DROP ROLE admin"], database="postgres")


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


@pytest.mark.slow
def test_the_dump_of_the_page_takes_the_ledgers_place(server, tmp_path):
    """With its rights and its claims, and without the rows that came later: the page's query says where it ends."""
    with server.open("sms_task") as store:
        use(store, "saved")
    dump, restore = (
        block.code.strip().replace("host=db1.example.com ", f"host={server.socket.parent} ")
        for block in blocks(PAGE, "sh")
        if block.code.startswith(("pg_dump", "pg_restore"))
    )
    file = str(tmp_path / "ledger.dump")
    _shell(dump.replace("ledger.dump", file))
    (ends,) = server.query("end")
    with server.open("sms_task") as store:
        use(store, "in the gap")
    server.run("postgres", statements("restore: as superuser"), database="postgres")
    _shell(restore.replace("ledger.dump", file))
    switch = statements("switch: as superuser, in another database")
    with server.open("sms_task") as store, store.read(), pytest.raises(psycopg2.Error, match="accessed by other users"):
        server.run("postgres", switch, database="postgres")
    server.run("postgres", switch, database="postgres")
    try:
        assert server.query("end") == [ends]
        first = persons(1)
        with server.open("sms_task") as store:
            later = claimant(5, run_id="later")
            (held,) = CampaignLedger(store, "saved", later).holders([first[0].key]).values()
            assert held.state == ACCEPTED
            assert not CampaignLedger(store, "in the gap", later).holders([first[0].key])
    finally:
        back = ("DROP DATABASE sms", "ALTER DATABASE sms_before RENAME TO sms")
        server.run("postgres", back, database="postgres")


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
    """A busy one without a word for five minutes, for a day, unless a later attempt of its task has begun."""
    for run, age in (("gone", 400), ("alive", 10), ("replaced", 400), ("done", 400), ("last year", 400 * 86_400)):
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
    """The session that keeps the package waiting for a lock, whoever it is, and not those that wait."""
    soon = SQL["stuck"].replace("20 seconds", "0 seconds")
    assert soon != SQL["stuck"]

    def wait():
        with store.read() as connection:
            connection.execute(text("SELECT count(*) FROM sms_message"))

    waiting = threading.Thread(target=wait)
    with closing(psycopg2.connect(host=str(quiet.socket.parent), user="sms_owner", dbname="sms")) as person:
        person.cursor().execute("LOCK TABLE sms_message")
        waiting.start()
        until(lambda: quiet.run("sms_monitor", [soon]))
        (row,) = quiet.run("sms_monitor", [soon])
        assert (row["usename"], row["state"], row["waiting"]) == ("sms_owner", "idle in transaction", 1)
        assert quiet.query("stuck") == []
        person.rollback()
        waiting.join(10.0)
    assert quiet.run("sms_monitor", [soon]) == []


def test_a_send_is_not_called_stuck():
    """The server ends a statement of it, and a transaction in which nothing happens, before the query lists them."""
    (seconds,) = map(int, re.findall(r"interval '(\d+) seconds'", SQL["stuck"]))
    assert max(postgres_engine.WAIT_SECONDS, IDLE_SECONDS) < seconds


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


def test_the_times_of_the_page_are_those_of_the_code():
    """Of statements and networks, of requests with a fixed token and with a fetched one, and of claims."""
    times = {row[0]: row[1] for row in rows_of("## Timeouts")}
    fixed = SmsClient(SERVICE, token="t").longest_call
    fetched = SmsClient(SERVICE, client_id="c", client_secret="s").longest_call
    kept = {name: int(value) for name, value in postgres_engine._KEEPALIVES.items()}
    silent = kept["keepalives_idle"] + kept["keepalives_interval"] * kept["keepalives_count"]
    assert times["a statement of a send at the ledger"] == f"{postgres_engine.WAIT_SECONDS:g} s"
    assert times["a transaction of a send in which nothing happens"] == f"{IDLE_SECONDS:g} s"
    assert times["the network under it is silent"] == f"{silent} s" == f"{kept['tcp_user_timeout'] // 1000} s"
    assert times["a request to the service with a fixed token"] == f"{fixed:g} s"
    assert times["the same with a client id and secret"] == f"{fetched:g} s"
    lapses = f"{fixed + MARGIN_SECONDS:g} s; with a client id {fetched + MARGIN_SECONDS:g} s"
    assert times["a claim lapses"] == lapses
    (claim_row,) = [row for row in rows_of("## Timeouts") if row[0] == "a claim lapses"]
    assert f"{2 * fixed + MARGIN_SECONDS:g} s; {2 * fetched + MARGIN_SECONDS:g} s" in claim_row[3]


def test_a_pod_may_stop_for_longer_than_a_claim_takes_to_lapse():
    """With a fixed token and with a client id, where the request first asks for the balance."""
    (row,) = [row for row in rows_of("## Timeouts") if "a pod of the KubernetesExecutor" in row[0]]
    found = re.search(r"(\d+) s; (\d+) s with a client id", row[3])
    for seconds, credentials in zip(
        map(int, found.groups()), ({"token": "t"}, {"client_id": "c", "client_secret": "s"}), strict=True
    ):
        assert seconds >= 2 * SmsClient(SERVICE, **credentials).longest_call + MARGIN_SECONDS


def test_the_words_to_alert_on_are_words_of_the_package():
    """Each is in a text that the code logs or raises."""
    texts = texts_of_the_package()
    words = [each for row in rows_of("**Words in the logs") for each in words_of(row[0])]
    assert len(words) > 10
    assert [each for each in words if not any(each in one for one in texts)] == []


def test_what_a_send_logs_as_an_error_is_worth_an_alert():
    """Each line that a task logs as an error, and each loss of the ledger that it raises, has words on the page."""
    words = [each for row in rows_of("**Words in the logs") for each in words_of(row[0])]
    worst = []
    for folder in ("execution", "sending", "ledger"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                called = ast.unparse(node.func)
                if called in ("log.error", "LedgerLostError"):
                    worst.append(ast.unparse(node.args[0]))
    # A report that is not written, and an error of Python: the task fails by them.
    known = ("The report could not be written", "%s at:")
    assert len(worst) >= 6
    assert [each for each in worst if not any(one in each for one in (*words, *known))] == []


def test_what_the_server_logs_by_the_protocol_is_named():
    """By the SQLSTATEs after which the package tries a transaction again."""
    (_, told) = PAGE.read_text().split("In PostgreSQL's own log", 1)
    named = set(re.findall(r"\b(\d\w{4})\)", told.partition("\n\n")[0]))
    assert named == {*backend._UNDONE, postgres._LOCK_NOT_AVAILABLE}


def test_the_metrics_of_the_page_are_emitted():
    """By the package, and by this Airflow where it lists its own."""
    (_, told) = PAGE.read_text().split("**Metrics**", 1)
    named = set(words_of(told.partition("\n\n")[0]))
    own = {name for name in named if name.startswith("sms.")}
    assert own <= {"sms.request_duration", "sms.balance", *(f"sms.{name}" for name in COUNTS)}
    import airflow

    listed = Path(airflow.__file__).parent / "_shared" / "observability" / "metrics" / "metrics_template.yaml"
    if listed.is_file():
        theirs = set(re.findall(r'^ +- name: "([\w.]+)"', listed.read_text(), re.MULTILINE))
        assert named - own - {"timeout"} <= theirs


def test_the_sizes_of_the_page_are_those_that_were_measured():
    """Bytes a message, and the sums for ten million of them."""
    rows = {row[0]: row[1:] for row in rows_of("## Sizing")}
    measured = (ROOT / "docs" / "several-tasks.md").read_text()
    stored = sum(int(re.search(rf"\| `{name}` \| (\d+) bytes a message", measured)[1]) for name in BIG)
    logged = int(re.search(r"\| write-ahead log \| (\d+) bytes a message", measured)[1])
    for name, each in (("disk", stored), ("write-ahead log", logged)):
        assert rows[name][0].startswith(f"{each} bytes a message")
        assert rows[name][1] == f"{each * 10_000_000 / 1e9:.1f} GB a month"


def test_the_versions_of_the_page_are_those_of_the_tests(server, postgres_url):
    """Whoever runs another one knows that it was not tried."""
    engine = create_engine(postgres_url)
    with closing(engine.connect()) as connection:
        found = {server.run("postgres", ["SHOW server_version"])[0]["server_version"]}
        found.add(connection.execute(text("SHOW server_version")).scalar())
    engine.dispose()
    told = re.search(r"The tests run on PostgreSQL (\d+) and (\d+)\.", PAGE.read_text())
    assert {version.partition(".")[0] for version in found} == set(told.groups())


def test_the_page_tells_of_scenarios():
    """Its table has a row for each scenario that can be played, in their order, and in each the promise was kept."""
    (_, told) = PAGE.read_text().split("\n## What was tried\n", 1)
    head = re.search(r"^\|(.*)\|$", told, re.MULTILINE)[1]
    names = [cell.strip().lower() for cell in head.split("|")]
    rows = rows_of("\n## What was tried\n")
    assert [row[0] for row in rows] == [each.name for each in SCENARIOS]
    twice, lost = names.index("twice"), names.index("lost")
    assert {(row[twice], row[lost]) for row in rows} == {("0", "0")}
    unknown, task, process = (names.index(name) for name in ("unknown", "task, s", "process, s"))
    above = [
        row[0]
        for row, each in zip(rows, SCENARIOS, strict=True)
        if int(row[unknown]) > each.requests * CHUNK
        or int(row[task]) > (each.seconds or LONGEST)
        or int(row[process]) > LONGEST
    ]
    assert above == []
