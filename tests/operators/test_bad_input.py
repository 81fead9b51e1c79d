"""What a person who gets an argument or the data wrong reads in a task's log, and whether Airflow tries again.

``test_bulk_options.py`` has what is refused when the DAG is loaded, and the tests of each module its reasons.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.airflow import run_task

from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.operators.sms import BulkSmsOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sms.testing.sandbox import SmsSandbox

NUMBER = "27829876543"
ROW = {"destination": NUMBER, "first_name": "Thandeka", "amount": 12.5}
LETTERS = "holds letters or signs that do not belong to a phone number"
CORRECT = "Nothing was sent. Correct the rows, or set on_invalid='skip' to leave them out. Rows count from 0:\n"
HAS = "it has 'destination', 'first_name', 'amount'"
TOO_FEW = "The source has 0 rows, fewer than min_rows=1. Nothing was sent. Is it the right source, and is it complete?"
NO_FILE = "there is no such file or directory"
WRITTEN_OUT = f"[{{'destination': '{NUMBER}'}}]"

# A mistake → options of the operator, beside a source of one good row and a message; and the words of the error.
FAILS: dict[str, tuple[dict[str, Any], str]] = {
    # Sources
    "no such file": ({"source": "/nowhere/none.csv"}, f"source: /nowhere/none.csv: {NO_FILE}"),
    "a person for a path": ({"source": "Ann;27820000001"}, f"source: Ann;2782*****01: {NO_FILE}"),
    "no rows": ({"source": [], "limits": {"min_rows": "1"}}, TOO_FEW),
    "no rows in a dry run": ({"source": [], "limits": {"min_rows": 1}, "dry_run": True}, TOO_FEW),
    "rows that a template wrote out": ({"source": WRITTEN_OUT}, "Pass the upstream task's output"),
    "a query that is wrong": (
        {"source": SqlSource("lite", "SELEC destination FROM people")},
        'source: the query of connection lite failed: OperationalError: near "SELEC": syntax error',
    ),
    # Rows
    "no such column of numbers": (
        {"destination_column": "destinaton"},
        f"destination_column: the source has no column 'destinaton'; {HAS}. Did you mean 'destination'?",
    ),
    "many bad rows": (
        {"source": [{"destination": f"x{row}"} for row in range(25)]},
        f"25 of 25 rows cannot be texted: 25 times {LETTERS}. {CORRECT}"
        + "".join(f"  row {row}, column destination: {LETTERS} (*****)\n" for row in range(10))
        + "  and 15 more",
    ),
    "a value that is missing": (
        {"source": pa.table({"destination": [NUMBER], "name": [None]}), "message": "Hi {name}"},
        f"1 of 1 row cannot be texted: 1 time no value. {CORRECT}  row 0, column name: no value",
    ),
    # Texts and keys
    "a conversion that a template writes": (
        {"message": "Hi {first_name{{ '!r' }}}"},
        "has a conversion; only a format is allowed",
    ),
    # Whom not to text, ledgers and connections
    "a person for the path of opt-outs": ({"suppress": "Ann;27820000001"}, f"suppress: Ann;2782*****01: {NO_FILE}"),
    "a ledger in another database": (
        {"ledger_conn_id": "lite"},
        "ledger_conn_id: connection 'lite' is of type 'sqlite'; the ledger needs a connection to PostgreSQL",
    ),
    "a connection without a token, before the table is read": (
        {"sms_conn_id": "tokenless", "source": "/nowhere/none.csv"},
        "Connection 'tokenless' has no password: put the bearer token there",
    ),
}
RETRIED: dict[str, tuple[dict[str, Any], str]] = {
    "a ledger that is down": ({"ledger_conn_id": "down"}, "The ledger cannot be opened: OperationalError: "),
    "no such connection": ({"sms_conn_id": "nowhere"}, "Connection 'nowhere' does not exist, or it cannot be read"),
}


@pytest.fixture
def connections(sms_default: Any, sms_sandbox: SmsSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections of the cases, beside ``sms_default``."""
    sms_sandbox.connect("tokenless", password=None)
    monkeypatch.setenv("AIRFLOW_CONN_LITE", json.dumps({"conn_type": "sqlite", "host": ":memory:"}))
    down = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "sms", "login": "sms"}
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", json.dumps({**down, "password": "pass-word-4711"}))
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0")


@pytest.mark.parametrize("name", [*FAILS, *RETRIED])
def test_a_mistake_is_told_and_tried_again_only_where_that_may_help(
    name: str, connections: None, ledger_path: Path, sms_sandbox: SmsSandbox
) -> None:
    """The log has its words once a try, with no error behind another; nobody is texted, and no number is shown."""
    options, words = {**FAILS, **RETRIED}[name]
    given = {"source": [ROW], "message": "Hi", "campaign": "c", **options}
    ran = run_task(lambda: BulkSmsOperator(task_id="send", **given), retries=2)
    assert (ran.state, ran.tries, sms_sandbox.texts()) == ("failed", 1 if name in FAILS else 3, {})
    assert words in ran.log
    assert re.findall("direct cause of the following|During handling of the above", ran.log) == []
    assert ran.log.count("Traceback (most recent call last)") == ran.tries
    secrets = {NUMBER, "word-4711", *re.findall(r"\d{7,}", repr(options))}
    assert [secret for secret in sorted(secrets) if secret in ran.log] == []
    assert NUMBER not in str(ran.rendered)
