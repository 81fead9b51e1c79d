from __future__ import annotations

import getpass
import socket
import time
from pathlib import Path

import pytest
from support.sending import people

from airflow_provider_sms.hooks.audit_log import number_details
from airflow_provider_sms.ledger.model import UNKNOWN
from airflow_provider_sms.ledger.pauses import pause_of

LONG_AGO = time.time() - 100 * 86_400
HERE = {"host": socket.gethostname()}


@pytest.fixture
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def recorded(audit_rows):
    """Return event, DAG and details of the rows, which all are of this user and this machine."""

    def recorded():
        rows = audit_rows()
        assert {(user, details.pop("host")) for _, user, _, details in rows} <= {(getpass.getuser(), HERE["host"])}
        return [(event, dag_id, details) for event, _, dag_id, details in rows]

    return recorded


def test_a_look_up_is_in_airflows_audit_log(ledger, sent, recorded, somebody):
    """The number masked and as a digest, and the requests that were shown, also where there were none."""
    request = sent(people(1))
    ledger("who", f"+{somebody}")
    ledger("who", "+27820009999")
    number, other = number_details(somebody), number_details("27820009999")
    assert recorded() == [
        ("sms.look_up", None, number),
        ("sms.look_up.shown", None, {**number, "requests": [request]}),
        ("sms.look_up", None, other),
        ("sms.look_up.shown", None, {**other, "requests": []}),
    ]


def test_each_change_is_in_airflows_audit_log(ledger, sent, recorded, tmp_path):
    """With ids and the DAG, once it was confirmed; a change that nobody confirmed is none."""
    one, two, three = (sent(people(1, 10 * place), UNKNOWN) for place in range(3))
    old = sent(people(1), campaign="old", at=LONG_AGO)
    ledger("resolve", one, "--as", "accepted")
    commands = [
        ("resolve", one, "--as", "accepted", "--yes"),
        ("resolve", "--campaign", "spring", "--all", "--as", "not-sent", "--yes"),
        ("pause", "spring"),
        ("resume", "spring"),
        ("adopt", "d", "t", "r", "--yes"),
        ("export", "spring", tmp_path / "spring.parquet"),
        ("purge", "--older-than", "90d", "--yes"),
    ]
    assert [ledger(*command).status for command in commands] == [0] * len(commands)
    *rows, (event, dag_id, purged) = recorded()
    assert rows == [
        ("sms.resolve", "d", {"requests": [one], "count": 1, "outcome": "accepted"}),
        ("sms.resolve", "d", {"requests": [two, three], "count": 2, "outcome": "not_sent"}),
        ("sms.pause", None, {"campaign_id": 1}),
        ("sms.resume", None, {"campaign_id": 1}),
        ("sms.adopt", "d", {"task_id": "t", "run_id": "r", "map_index": -1}),
        ("sms.export", None, {"campaign_id": 1}),
    ]
    assert (event, dag_id, purged["campaigns"], purged["count"]) == ("sms.purge", None, [2], 1)
    assert old


def test_a_change_that_fails_is_in_airflows_audit_log(ledger, sent, recorded, tmp_path):
    """After the row that announced it."""
    sent(people(1))
    assert ledger("export", "spring", tmp_path / "no folder" / "spring.parquet").status == 1
    assert [event for event, _, _ in recorded()] == ["sms.export", "sms.export.failed"]


TABLES = ("campaign", "request", "message", "pause", "decision", "claimant")


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("sms.look_up", ("who", "+27820000000")),
        ("sms.look_up.shown", ("who", "+27820000000")),
        ("sms.resolve", ("resolve", 1, "--as", "not-sent", "--yes")),
        ("sms.resume", ("resume", "spring")),
        ("sms.adopt", ("adopt", "d", "t", "r", "--yes")),
        ("sms.export", ("export", "spring", "spring.parquet")),
        ("sms.purge", ("purge", "--older-than", "90d", "--yes")),
    ],
)
@pytest.mark.usefixtures("in_an_empty_folder")
def test_what_cannot_be_recorded_is_not_done(ledger, sent, rows, audit_log_fails, event, arguments):
    """Nothing is shown, written or changed, and the error says so without the words of the database."""
    sent(people(3), UNKNOWN)
    sent(people(3), campaign="old", at=LONG_AGO)
    ledger("pause", "spring")
    before = [rows(f"SELECT * FROM sms_{table}") for table in TABLES]
    audit_log_fails(event)
    said = ledger(*arguments)
    assert (said.status, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith("Airflow's audit log could not be written (OperationalError)")
    assert "internal" not in said.err
    assert [rows(f"SELECT * FROM sms_{table}") for table in TABLES] == before
    assert not Path("spring.parquet").exists()


def test_a_pause_does_not_wait_for_the_audit_log(ledger, sent, store, audit_log_fails):
    """It may be urgent, and stops texts only: the command says that the ledger alone has it."""
    sent(people(1))
    audit_log_fails("sms.pause")
    said = ledger("pause", "spring")
    assert said.status == 0
    assert "the pause is in the ledger, and in no audit log" in said.err
    assert pause_of(store, "spring").paused_by == getpass.getuser()
