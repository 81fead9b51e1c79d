"""The pages *Deploy* and *The ledger*: their files, checked against Airflow's settings, their commands, their SQL."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from contextlib import closing, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import yaml
from airflow.providers.common.compat.sdk import Connection
from psycopg.rows import dict_row
from sqlalchemy import event, text
from support.cluster import _binaries, running_node, running_pair, until
from support.machines.services import create_databases
from support.pages import DEPLOY as PAGE
from support.pages import LEDGER, ROOT, blocks, shell
from support.sending import claim, claimant, close, people

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.connection import client_settings
from airflow_provider_sms.hooks.ledger import LOCAL_EXECUTORS, postgres_url, refuse_several_machines
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.postgres import IDLE_SECONDS, WAIT_SECONDS, open_postgres
from airflow_provider_sms.sending.sender import MARGIN_SECONDS

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
DEPLOY = ROOT / "docs" / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
VALUES = yaml.safe_load((DEPLOY / "helm-values.yaml").read_text())
KUBERNETES = yaml.safe_load((DEPLOY / "helm-values-kubernetes.yaml").read_text())
AIRFLOW_VERSION = "3.3.2"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
"""Settings of pip by which it takes what is installed, and asks no package index. The second one is read as a flag."""


def test_an_executor_takes_the_ledger_of_the_page():
    """Executors that run tasks on one machine take a file, and all others refuse it."""
    rows = re.findall(r"^\| [^|]+ \| (`\w+Executor`[^|]*) \| (\w+)", TEXT, re.MULTILINE)
    ledgers = {name: ledger for names, ledger in rows for name in re.findall(r"`(\w+)`", names)}
    assert (len(ledgers), set(ledgers.values())) == (5, {"file", "PostgreSQL"})
    for executor, ledger in ledgers.items():
        refused = pytest.raises(InputError, match=f"{executor} runs tasks on several machines")
        with refused if ledger == "PostgreSQL" else nullcontext():
            refuse_several_machines(executor, {})
        assert (executor in LOCAL_EXECUTORS) == (ledger == "file")


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
            close(ledger, claim(ledger, people(3)))
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
        close(ledger, claim(ledger, people(3)))
    dump, restore = (
        shell(words).replace("db1.example.com", str(server.socket.parent)) for words in ("pg_dump", "pg_restore")
    )
    run_shell(dump, server.socket.parent, _binaries())
    (ends,) = server.run("postgres", [END])
    with closing(open_postgres(server.url())) as store:
        ledger = CampaignLedger(store, "in the gap", claimant())
        close(ledger, claim(ledger, people(3)))
    run_shell(restore, server.socket.parent, _binaries())
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


def run_shell(code, folder, commands=Path(sys.executable).parent, **variables):
    """Run a block of the page in a folder, with an environment's Python as ``python``."""
    names = {**os.environ, **variables, "PATH": f"{commands}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euc", code], cwd=folder, env=names, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_query_of_unknown_requests(server, store):
    """Those whose response was lost, those whose process died, and not those that are under way or closed."""
    ledger = CampaignLedger(store, "spring", claimant())
    for place, state in enumerate((ACCEPTED, NOT_SENT, UNKNOWN)):
        lost = claim(ledger, people(3, 10 * place))
        close(ledger, lost, state)
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


def environment(service):
    return SERVICES[service].get("environment", {})


def made_secrets():
    """Return what ``make-secrets.sh`` prints, by name."""
    done = subprocess.run(["sh", DEPLOY / "make-secrets.sh"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def filled(written, secrets):
    """Return a text with the secrets in it, as Compose does."""
    return re.sub(r"\$\{(\w+)(?::\?[^}]*)?\}", lambda match: secrets[match[1]], written)


@cache
def known_settings():
    """Return the sections of Airflow's configuration and of its providers, with their options."""
    from airflow.configuration import conf
    from airflow.providers_manager import ProvidersManager

    ProvidersManager().initialize_providers_configuration()
    known = {name: set(section["options"]) for name, section in conf.configuration_description.items()}
    return {**known, "sms": set(get_provider_info()["config"]["sms"]["options"])}


def test_each_setting_is_one_of_airflow_or_of_a_provider(airflow_home):
    """A misspelt one would be ignored, without a word."""
    used = {
        tuple(name.removeprefix("AIRFLOW__").lower().split("__"))
        for service in SERVICES
        for name in environment(service)
        if name.startswith("AIRFLOW__")
    }
    used |= {(section, option) for section, options in VALUES["config"].items() for option in options}
    assert len(used) > 10
    assert {(section, option) for section, option in used if option not in known_settings().get(section, ())} == set()


def test_versions_are_named_and_the_same_everywhere():
    """No image is whatever is newest on the day; the tests run on this Airflow."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^FROM (.*)$", dockerfile, re.MULTILINE) == [f"apache/airflow:{AIRFLOW_VERSION}"]
    images = {service["image"] for service in SERVICES.values()}
    assert {image for image in images if not re.search(r":\d[\w.-]*$", image)} == set()
    assert f"airflow-sms:{AIRFLOW_VERSION}" in images
    assert (VALUES["airflowVersion"], VALUES["defaultAirflowTag"]) == (AIRFLOW_VERSION, AIRFLOW_VERSION)
    assert f'NEWEST = "{AIRFLOW_VERSION}"' in (ROOT / "noxfile.py").read_text()


def test_a_task_has_time_to_send_and_to_stop():
    """Celery delivers no task again that still sends, and a pod that stops has the time of the longest claim."""
    celery = int(environment("worker")["AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT"])
    assert celery == VALUES["config"]["celery_broker_transport_options"]["visibility_timeout"] >= 86_400
    connection = Connection(conn_id="c", conn_type="sms", host="rest.example.com/v1", login="c", password="s")
    longest = client_settings(connection, {}).client().longest_call
    claim = 2 * longest + MARGIN_SECONDS
    assert KUBERNETES["workers"]["kubernetes"]["terminationGracePeriodSeconds"] >= claim
    assert environment("worker")["DUMB_INIT_SETSID"] == "0"


def test_the_secrets_of_the_page_are_those_of_the_values():
    """Whoever follows the page has each secret, with the key that the chart reads."""
    (code,) = [block.code for block in blocks(PAGE, "sh") if "kubectl create namespace" in block.code]
    made = dict(re.findall(r"secret generic (\S+) \\\n  --from-literal=([\w-]+)=", code))
    assert made == {
        VALUES["data"]["metadataSecretName"]: "connection",
        VALUES["fernetKeySecretName"]: "fernet-key",
        VALUES["apiSecretKeySecretName"]: "api-secret-key",
        VALUES["jwtSecretName"]: "jwt-secret",
        yaml.safe_load(VALUES["extraEnvFrom"])[0]["secretRef"]["name"]: "AIRFLOW_CONN_SMS_LEDGER",
    }
    connections = {name: json.loads(written) for name, written in re.findall(r"AIRFLOW_CONN_(\w+)='(.*)'", code)}
    assert connections["SMS_LEDGER"]["extra"]["sslmode"] == "verify-full"
    assert connections["SMS_DEFAULT"]["host"].startswith("https://")


def test_each_secret_of_the_compose_file_is_made():
    """By the script, another one each time; and nothing is made that nobody uses."""
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    first, second = made_secrets(), made_secrets()
    assert used == first.keys()
    assert {name for name in first if first[name] == second[name]} == set()
    from cryptography.fernet import Fernet

    Fernet(first["AIRFLOW_FERNET_KEY"])


def test_the_connections_of_the_compose_file_are_read():
    """The ledger's lead to its role, and the account's to the sandbox's door, which leads to the sandbox's port."""
    from airflow_provider_sms.sandbox.__main__ import _parser

    secrets = made_secrets()

    def read(service, name):
        fields = json.loads(filled(environment(service)[name], secrets))
        extra = fields.get("extra", {})
        return SimpleNamespace(**{"login": None, "port": None, "schema": None, "conn_id": "c", **fields}), extra

    for service in ("worker", "api-server"):
        url = postgres_url(*read(service, "AIRFLOW_CONN_SMS_LEDGER"))
        assert (url.username, url.database, url.host) == ("sms", "sms", "postgres")
    settings = client_settings(*read("worker", "AIRFLOW_CONN_SMS_DEFAULT"))
    assert (settings.base_url, settings.token) == ("http://sandbox-door:8080/v1", secrets["SMS_TOKEN"])
    command = [filled(each, secrets) for each in SERVICES["sandbox"]["command"]]
    assert f"http://127.0.0.1:{_parser().parse_args(command).port}" in COMPOSE["configs"]["sandbox-door"]["content"]


def test_the_databases_of_the_compose_file_hold_a_ledger(patient_servers):
    """Its role makes the tables and sends; Airflow has a database of its own."""
    secrets = made_secrets()
    with running_node() as node:
        settings = {name: filled(value, secrets) for name, value in environment("postgres").items()}
        create_databases(node, **settings)
        with closing(open_postgres(node.url("sms").set(username="sms"))) as store:
            ledger = CampaignLedger(store, "first", claimant())
            close(ledger, claim(ledger, people(3)))
        rows = node.ask("SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) IN ('airflow', 'sms')")
        assert sorted(rows) == [("airflow",), ("sms",)]


@pytest.mark.slow
def test_what_the_dockerfile_copies_is_the_package(tmp_path):
    """The page's command builds the package of these files alone, and the image's context holds them."""
    sources = re.findall(r"^COPY --chown=\S+ (.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = [name for line in sources for name in line.split()]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert {f"!{name}" for name in names} == {line for line in ignored if line.startswith("!")}
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    run_shell(shell("pip wheel"), tmp_path, **OFFLINE)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert "airflow_provider_sms/get_provider_info.py" in packed.namelist()
