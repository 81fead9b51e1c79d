"""Commands of other pages, as they stand there, in the environment that the README's commands make."""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text
from support.other_service import OtherService, served
from support.pages import ROOT, blocks
from support.reader import ACTIVATE, README, SANDBOX, SETTINGS, TABLE, counts, dag_of

TOKEN = "the-api-key-of-the-other-service"
DOCS = ROOT / "docs"
OPERATIONS, DEPLOYED = 4, 5
"""Terminals in which the ledger is looked after, and in which an Airflow of its own gets the package."""


def block(page, words, language="sh"):
    """Return the only block of a page that contains some words."""
    (found,) = (block.code for block in blocks(DOCS / page, language) if words in block.code)
    return found


@pytest.fixture
def ledger_of_campaign(campaign, home):
    """The file of the ledger of a campaign that was sent, beside which somebody has a terminal."""
    campaign.type(f"cd ~\n{ACTIVATE}\n{SETTINGS}", terminal=OPERATIONS)
    return home / "sms-airflow" / "sms_ledger.db"


def test_after_a_restore_nobody_is_texted_again(campaign, ledger_of_campaign, home):
    """A backup after a send, put back by the commands of the page *The ledger*, knows who was texted."""
    before, moved = campaign.texts(), home / "ledger-before" / "sms_ledger.db"
    campaign.type(block("ledger.md", ".backup("), terminal=OPERATIONS)
    written = ledger_of_campaign.stat().st_ino
    campaign.type(block("ledger.md", "ledger-before"), terminal=OPERATIONS)
    assert (moved.stat().st_ino, ledger_of_campaign.stat().st_mode & 0o777) == (written, 0o600)
    (found,) = counts(campaign.type("airflow dags test remind_customers", terminal=OPERATIONS))[-1:]
    assert (found["accepted"], found["already_sent"]) == ("0", "3")
    assert campaign.texts() == before


def test_after_an_install_airflow_has_the_package(campaign):
    """Each command of the page *Deploy*, with the sandbox in the service's place, finds what the package brings."""
    settings = "export AIRFLOW_HOME=~/deployed AIRFLOW__CORE__TEST_CONNECTION=Enabled"
    campaign.type(f"{ACTIVATE}\n{settings}\nairflow db migrate", terminal=DEPLOYED)
    typed = block("deploy.md", "airflow providers get")
    for of_the_page, of_the_sandbox in (
        ("https://rest.example.com/v1", "http://127.0.0.1:8025/v1"),
        ("THE-TOKEN", "my-token"),
    ):
        assert typed.count(of_the_page) == 1
        typed = typed.replace(of_the_page, of_the_sandbox)
    provider, plugins, option, added, tested = (campaign.type(line, terminal=DEPLOYED) for line in typed.splitlines())
    assert re.search(r"^airflow-provider-sms +\|", provider, re.MULTILINE)
    assert re.search(r"^sms +\|", plugins, re.MULTILINE)
    assert option.split()[-1] == "0"
    assert "Successfully added `conn_id`=sms_default" in added
    assert "Connection success!" in tested


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no program sqlite3")
def test_the_space_of_a_ledger_is_given_back(campaign, ledger_of_campaign):
    """The command of the page *The ledger* leaves no free page, and everybody who was texted."""

    def asked(question):
        with closing(sqlite3.connect(ledger_of_campaign)) as connection:
            return connection.execute(question).fetchall()

    everybody = asked("SELECT * FROM sms_message ORDER BY 1, 2")
    campaign.type(block("ledger.md", "VACUUM"), terminal=OPERATIONS)
    assert asked("PRAGMA freelist_count") == [(0,)]
    assert asked("SELECT * FROM sms_message ORDER BY 1, 2") == everybody
    assert len(everybody) >= 3


def test_the_adapter_runs_by_its_command(reader, home, send, people, sms_default):
    """Started as on the page, it passes each message on once, and what it cost; it ends by Ctrl+C."""
    code, start = (DOCS / "deploy" / "adapter.py").read_text(), block("service.md", "uvicorn adapter:app")
    folder = home / "adapter"
    folder.mkdir()
    (folder / "adapter.py").write_text(code)
    other = OtherService(TOKEN)
    with served(other.handler) as url:
        reader.type(f"cd ~/adapter\n{ACTIVATE}")
        start, count = re.subn(r"https://sms\.example\.com", url, start)
        assert count == 1
        reader.type(start, until="INFO:     Uvicorn running on ")
        sms_default(host=reader.adapted("http://127.0.0.1:8026/v1"), password=TOKEN)
        first = send(people(5), campaign="adapter", chunk_size=1)
        again = send(people(5), campaign="adapter", chunk_size=1)
        reader.interrupt(1)
    assert (first.state, first.summary["accepted"], first.summary["cost"]) == ("success", 5, 7.5)
    assert (again.state, again.summary["already_sent"]) == ("success", 5)
    assert sorted(other.taken) == [(f"+2782000000{n}", f"Hi Name{n}") for n in range(5)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", reader.adapter_port)).close()


@pytest.fixture
def server(postgres_server):
    """A PostgreSQL server on which the statements of the page *The ledger* have made a role and a database."""
    code = block("ledger.md", "-- one role: as superuser\n", "sql")
    engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in filter(None, map(str.strip, code.split(";"))):
            connection.execute(text(statement))
    engine.dispose()
    return postgres_server.set(username="sms", database="sms")


def test_a_ledger_in_postgresql_is_used_by_argument_and_by_option(campaign, reader, server, home):
    """A task that names the page's connection sends, and another one, by the option, texts nobody again."""
    reader.start_sandbox(f"{ACTIVATE}\n{SANDBOX}")
    reader.type(f"{ACTIVATE}\n{SETTINGS}{TABLE}")
    place, code = dag_of(README)
    (argument,) = re.findall(r'^ *(ledger_conn_id="\w+",)', block("scale.md", "ledger_conn_id", "python"), re.MULTILINE)
    sends = re.sub(r"^ *dry_run=True.*\n", "", reader.adapted(code), flags=re.MULTILINE)
    written = sends.replace("remind_customers", "by_option")
    (home / place).with_name("by_option.py").write_text(written)
    written = written.replace("by_option", "by_argument").replace("campaign=", f"{argument}\n        campaign=")
    (home / place).with_name("by_argument.py").write_text(written)

    install, known, option = block("ledger.md", "'.[postgres]'").splitlines()
    reader.type("\n".join([install, known.replace("db.example.com", server.host or server.query["host"])]))
    sent = counts(reader.type("airflow dags test by_argument"))[-1]
    reader.type(option)
    assert reader.type(block("deploy.md", "get-value sms ledger_conn_id")).split()[-1] == "sms_ledger"
    again = counts(reader.type("airflow dags test by_option"))[-1]

    assert (sent["accepted"], again["accepted"], again["already_sent"]) == ("3", "0", "3")
    assert len(reader.texts()) == 3
    engine = create_engine(server)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM sms_message")).scalar() == 3
    engine.dispose()
