"""What a person who gets an argument or the data wrong reads: when, in which words, and whether Airflow retries it."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unittest.mock import Mock
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from pyarrow import parquet
from support.airflow import everything_logged, run_task

from airflow_provider_sms.exceptions import InputError, TemplateError
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.recipients.numbers import DATE, IMPOSSIBLE, NO_CODE, SEVERAL

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sms.testing.sandbox import SmsSandbox

NUMBER = "27829876543"
LOCAL = "0829876543"
ROW = {"destination": NUMBER, "first_name": "Thandeka", "amount": 12.5}
LOAD, FAILS, RETRIED = "when the DAG is loaded", "in the task, which is not retried", "in the task, which is retried"
When = Literal["when the DAG is loaded", "in the task, which is not retried", "in the task, which is retried"]
MISSPELT = TypeError
"""Airflow's own error for an argument that nobody knows."""
PASS = (
    "pass a path or a URI of files, an asset, a list of these, a SqlSource, a DataFrame, a pyarrow Table or another "
    "object with Arrow's C stream interface, a list or an iterator of dicts, or a list of numbers"
)
READ = "parquet, parq, pq, arrow, feather, ipc, csv, tsv, jsonl, ndjson"
LETTERS = "holds letters or signs that do not belong to a phone number"
CORRECT = "Nothing was sent. Correct the rows, or set on_invalid='skip' to leave them out. Rows count from 0:\n"
SMS_ID = "sms_conn_id must be the id of a connection of type sms, such as 'sms_default'"
LEDGER_ID = "ledger_conn_id must be the id of a connection of type postgres, or None for the configured ledger"
LOOK_UP = (
    "or it cannot be read (is its JSON valid?), or its look-up may have failed: Airflow says the same where a secrets "
    "backend or its database fails, and then a retry helps. Otherwise create"
)
NAME_IT = "Nothing was sent. Give the campaign a name, or leave campaign out for one of each task and DAG run"


class Case(NamedTuple):
    """One mistake.

    :param options: of the operator, beside a source of one good row and a message; ``FOLDER`` in a text is a folder
        with the files below.
    :param when: when it is found, and whether Airflow tries again.
    :param error: the class of the error itself, no base of it.
    :param words: with which the error begins: what is wrong, and what to do.
    """

    options: dict[str, Any]
    when: When
    error: type[Exception]
    words: str


def table(**columns):
    return pa.table({"destination": [NUMBER], **columns})


CASES: dict[str, Case] = {
    # Sources
    "no such file": Case(
        {"source": "FOLDER/none.csv"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/none.csv: there is no such file or directory",
    ),
    "an empty path": Case(
        {"source": ""}, LOAD, InputError, f"source: recipients cannot be read from an empty text: {PASS}"
    ),
    "no source": Case({"source": None}, LOAD, InputError, f"source: recipients cannot be read from None: {PASS}"),
    "a source of another kind": Case(
        {"source": 5.5}, LOAD, InputError, f"source: recipients cannot be read from float: {PASS}"
    ),
    "a path of blanks": Case(
        {"source": ["FOLDER/good.csv", " "]},
        LOAD,
        InputError,
        f"source: recipients cannot be read from an empty text: {PASS}",
    ),
    "a path as bytes": Case(
        {"source": b"people.csv"}, LOAD, InputError, f"source: recipients cannot be read from bytes: {PASS}"
    ),
    "an empty folder": Case(
        {"source": "FOLDER/empty"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/empty: the directory holds no file",
    ),
    "a pattern without files": Case(
        {"source": "FOLDER/*.parquet.gz"}, FAILS, AirflowFailException, "source: FOLDER/*.parquet.gz: no file matches"
    ),
    "an Excel file": Case(
        {"source": "FOLDER/people.xlsx"},
        FAILS,
        AirflowFailException,
        f"source: FOLDER/people.xlsx: the ending of its name is none that is read: {READ}. If it has recipients, "
        "convert it, and name it by its format; otherwise leave it out, by a glob such as *.csv",
    ),
    "a file without an ending": Case(
        {"source": "FOLDER/people"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/people: is not a valid Parquet file, or is damaged or cut short; a name without an ending is "
        "taken for Parquet",
    ),
    "a file of no bytes": Case(
        {"source": "FOLDER/nothing.csv"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/nothing.csv: is empty; the first line must hold the names of the columns",
    ),
    "a file of a header alone": Case(
        {"source": "FOLDER/header.csv", "limits": {"min_rows": 1}},
        FAILS,
        AirflowFailException,
        "The source has 0 rows, fewer than min_rows=1. Nothing was sent. Is it the right source, and is it "
        "complete? If so, lower min_rows",
    ),
    "a file without a header": Case(
        {"source": "FOLDER/headless.csv"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/headless.csv: the first line holds a number; it must hold the names of the columns",
    ),
    "a row with too many cells": Case(
        {"source": "FOLDER/ragged.csv"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/ragged.csv: row 1 of the file has 4 values, but the header names 3 columns",
    ),
    "a file in another encoding": Case(
        {"source": "FOLDER/latin.csv", "message": "Hi {first_name}"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/latin.csv: line 2: holds text that is not UTF-8, such as the Windows-1252 of spreadsheets; "
        "write it as UTF-8",
    ),
    "a column twice": Case(
        {"source": "FOLDER/twice.csv"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/twice.csv: more than one column is named 'destination'; rename or drop the others",
    ),
    "a Parquet file that breaks off": Case(
        {"source": "FOLDER/broken.parquet"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/broken.parquet: is not a valid Parquet file, or is damaged or cut short",
    ),
    "a CSV file that is called Parquet": Case(
        {"source": "FOLDER/csv.parquet"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/csv.parquet: is not a valid Parquet file, or is damaged or cut short",
    ),
    "JSON lines that break off": Case(
        {"source": "FOLDER/broken.jsonl"},
        FAILS,
        AirflowFailException,
        "source: FOLDER/broken.jsonl: line 2 is not a JSON object; write one object a line, of up to 1 MiB, in "
        "UTF-8. A file that is one JSON array is not read",
    ),
    "files of different columns": Case(
        {"source": ["FOLDER/good.csv", "FOLDER/other.csv"]},
        FAILS,
        AirflowFailException,
        "FOLDER/other.csv: destination_column: the source has no column 'destination'; it has",
    ),
    "a DataFrame without columns": Case(
        {"source": pd.DataFrame(), "limits": {"min_rows": 1}},
        FAILS,
        AirflowFailException,
        "The source has 0 rows, fewer than min_rows=1. Nothing was sent. Is it the right source, and is it "
        "complete? If so, lower min_rows",
    ),
    "a DataFrame with a column twice": Case(
        {"source": pd.DataFrame([[NUMBER, NUMBER]], columns=["destination", "destination"])},
        FAILS,
        AirflowFailException,
        "source: DataFrame of 1 row: more than one column is named 'destination'; rename or drop the others",
    ),
    "rows of different columns": Case(
        {"source": [ROW, {"mobile": NUMBER}]},
        FAILS,
        AirflowFailException,
        f"1 of 2 rows cannot be texted: 1 time no number. {CORRECT}",
    ),
    "rows that are lists": Case(
        {"source": [[NUMBER, "Thandeka"]]},
        FAILS,
        AirflowFailException,
        "source: a list of recipients must hold one kind of element: paths, dicts or numbers, not list",
    ),
    "a dict of columns": Case(
        {"source": {"destination": [NUMBER]}}, LOAD, InputError, f"source: recipients cannot be read from dict: {PASS}"
    ),
    "a set of numbers": Case(
        {"source": {NUMBER, LOCAL}}, LOAD, InputError, f"source: recipients cannot be read from set: {PASS}"
    ),
    "a scheme that nobody knows": Case(
        {"source": "gopher://host/people.parquet"},
        FAILS,
        AirflowFailException,
        "source: no file system for gopher://; is its Airflow provider installed?",
    ),
    "a query of no connection": Case(
        {"source": SqlSource("nowhere", "SELECT 1")},
        RETRIED,
        AirflowException,
        f"source: there is no Airflow connection 'nowhere', {LOOK_UP} it",
    ),
    "a query that is wrong": Case(
        {"source": SqlSource("lite", "SELEC destination FROM people")},
        FAILS,
        AirflowFailException,
        'source: the query of connection lite failed: OperationalError: near "SELEC": syntax error',
    ),
    "a query of a connection that knows no SQL": Case(
        {"source": SqlSource("sms_default", "SELECT 1")},
        FAILS,
        AirflowFailException,
        "source: connection 'sms_default' is not a database: its hook SmsHook is not a DbApiHook",
    ),
    # Destinations
    "no such column of numbers": Case(
        {"destination_column": "destinaton"},
        FAILS,
        AirflowFailException,
        "destination_column: the source has no column 'destinaton'; it has 'destination', 'first_name', "
        "'amount'. Did you mean 'destination'?",
    ),
    "an empty name of the column of numbers": Case(
        {"destination_column": ""},
        LOAD,
        InputError,
        "destination_column must be the name of a column, such as 'destination'",
    ),
    "a number as a decimal": Case(
        {"source": [{"destination": 2.7829876543e10 + 0.5}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time has decimals, so it is not a phone number. {CORRECT}",
    ),
    "letters in a number": Case(
        {"source": [{"destination": f"call {NUMBER}"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {LETTERS}. {CORRECT}",
    ),
    "a national number without a region": Case(
        {"source": [{"destination": LOCAL}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {NO_CODE}. {CORRECT}",
    ),
    "no number": Case(
        {"source": [{"destination": ""}, {"destination": None}]},
        FAILS,
        AirflowFailException,
        f"2 of 2 rows cannot be texted: 2 times no number. {CORRECT}",
    ),
    "a date in the column of numbers": Case(
        {"source": [{"destination": "12/03/2026"}], "default_region": "ZA"},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {DATE}. {CORRECT}",
    ),
    "a number as it was spelt until 2019": Case(
        {"source": [{"destination": "+52 1 55 1234 5678"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {IMPOSSIBLE}. {CORRECT}",
    ),
    "a spreadsheet's error for a number": Case(
        {"source": [{"destination": "#REF!"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time a spreadsheet's error in the place of a number. {CORRECT}",
    ),
    "a spreadsheet's error in a text": Case(
        {"source": [ROW | {"first_name": "#NAME?"}], "message": "Hi {first_name}"},
        FAILS,
        AirflowFailException,
        "1 of 1 row cannot be texted: 1 time a word that tools write where a value is missing, such as nan, NULL or a "
        "spreadsheet's #REF!",
    ),
    "a number and an extension": Case(
        {"source": [{"destination": "021 555 0101-3"}], "default_region": "ZA"},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {SEVERAL}. {CORRECT}",
    ),
    "a number with a digit too many": Case(
        {"source": [{"destination": f"+{NUMBER}1"}]},
        FAILS,
        AirflowFailException,
        "1 of 1 row cannot be texted: 1 time not a possible number of the country whose code it begins with. "
        f"{CORRECT}",
    ),
    "a region by its other name": Case(
        {"default_region": "UK"},
        LOAD,
        InputError,
        "default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not 'UK'; did you mean 'GB'?",
    ),
    "two numbers in a cell": Case(
        {"source": [{"destination": f"{NUMBER}; 27829876544"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {LETTERS}. {CORRECT}",
    ),
    "a number that is too short": Case(
        {"source": [{"destination": "27829"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {NO_CODE}. {CORRECT}",
    ),
    "a number that is too long": Case(
        {"source": [{"destination": f"{NUMBER}{NUMBER}"}]},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time {NO_CODE}. {CORRECT}",
    ),
    "a region that does not exist": Case(
        {"default_region": "XX"},
        LOAD,
        InputError,
        "default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not 'XX'",
    ),
    "a region in words": Case(
        {"default_region": "South Africa"},
        LOAD,
        InputError,
        "default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not 'South Africa'",
    ),
    "many bad rows": Case(
        {"source": [{"destination": f"x{row}"} for row in range(25)]},
        FAILS,
        AirflowFailException,
        f"25 of 25 rows cannot be texted: 25 times {LETTERS}. {CORRECT}"
        + "".join(f"  row {row}, column destination: {LETTERS} (*****)\n" for row in range(10))
        + "  and 15 more",
    ),
    # Texts
    "no text": Case({"message": None}, LOAD, InputError, "exactly one of message and content_column is needed"),
    "an empty text": Case({"message": ""}, LOAD, TemplateError, "message is empty"),
    "a text twice": Case(
        {"content_column": "first_name"}, LOAD, InputError, "exactly one of message and content_column is needed"
    ),
    "no such column in a text": Case(
        {"message": "Hi {firstname}"},
        FAILS,
        AirflowFailException,
        "message: the source has no column 'firstname'; it has 'destination', 'first_name', 'amount'",
    ),
    "an attribute in a text": Case(
        {"message": "Hi {first_name.upper}"},
        FAILS,
        AirflowFailException,
        "message: the source has no column 'first_name.upper'; it has 'destination', 'first_name', 'amount'. "
        "Did you mean 'first_name'?",
    ),
    "an index in a text": Case(
        {"message": "Hi {first_name[0]}"},
        FAILS,
        AirflowFailException,
        "message: the source has no column 'first_name[0]'; it has 'destination', 'first_name', 'amount'. "
        "Did you mean 'first_name'?",
    ),
    "a position in a text": Case(
        {"message": "Hi {0}"},
        FAILS,
        AirflowFailException,
        "message: the source has no column '0'; it has 'destination', 'first_name', 'amount'",
    ),
    "an open brace in a text": Case(
        {"message": "Hi {first_name"},
        LOAD,
        TemplateError,
        "message is not a template: expected '}' before end of string. Write a literal brace twice",
    ),
    "a format that does not fit": Case(
        {"message": "Hi {first_name:.2f}"},
        FAILS,
        AirflowFailException,
        "1 of 1 row cannot be texted: 1 time not a number such as 1250.50, which the format in the message can write. "
        f"{CORRECT}",
    ),
    "a text of too many parts": Case(
        {"message": "x" * 200, "limits": {"max_parts": 1}},
        FAILS,
        AirflowFailException,
        "The message of row 0 takes 2 SMS parts, more than max_parts=1. Rows count from 0. "
        "Nothing was sent. Shorten the text, look at the encoding in the plan above, or raise "
        "max_parts",
    ),
    "a value that is missing": Case(
        {"source": table(name=[None]), "message": "Hi {name}"},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time no value. {CORRECT}",
    ),
    "no such column of texts": Case(
        {"message": None, "content_column": "contnt"},
        FAILS,
        AirflowFailException,
        "content_column: the source has no column 'contnt'; it has 'destination', 'first_name', 'amount'",
    ),
    "a row without a text": Case(
        {"source": table(text=[""]), "message": None, "content_column": "text"},
        FAILS,
        AirflowFailException,
        f"1 of 1 row cannot be texted: 1 time the text is empty. {CORRECT}",
    ),
    # Campaigns and the ledger
    "an empty campaign": Case({"campaign": ""}, LOAD, InputError, f"campaign is empty. {NAME_IT}"),
    "a campaign that is too long": Case(
        {"campaign": "c" * 1001}, LOAD, InputError, f"campaign has 1001 characters, and may have 1000. {NAME_IT}"
    ),
    "a key that is no column": Case(
        {"key_columns": ["invoce"]},
        FAILS,
        AirflowFailException,
        "key_columns: the source has no column 'invoce'; it has 'destination', 'first_name', 'amount'",
    ),
    "a key in place of a list": Case(
        {"key_columns": "invoice"}, LOAD, InputError, "key_columns is a list of column names: write ['invoice']"
    ),
    "a ledger that is no connection": Case(
        {"ledger_conn_id": "nowhere"},
        RETRIED,
        AirflowException,
        f"ledger_conn_id: Airflow has no connection 'nowhere', {LOOK_UP} it, of type postgres, or name the connection "
        "to the ledger",
    ),
    "an empty name of the ledger": Case(
        {"ledger_conn_id": " "},
        LOAD,
        InputError,
        f"{LEDGER_ID}, not the text ' '",
    ),
    "a ledger that is no text": Case(
        {"ledger_conn_id": {"host": "db"}},
        LOAD,
        InputError,
        f"{LEDGER_ID}, not a value of type dict",
    ),
    "a ledger in another database": Case(
        {"ledger_conn_id": "lite"},
        FAILS,
        AirflowFailException,
        "ledger_conn_id: connection 'lite' is of type 'sqlite'; the ledger needs a connection to PostgreSQL",
    ),
    "a ledger that is down": Case(
        {"ledger_conn_id": "down"}, RETRIED, AirflowException, "The ledger cannot be opened: OperationalError: "
    ),
    # Options
    "a flag in other words": Case(
        {"dry_run": "maybe"}, LOAD, InputError, "dry_run must be true or false, not the text 'maybe'"
    ),
    "a number in words": Case(
        {"limits": {"max_rows": "lots"}},
        LOAD,
        InputError,
        "limits: max_rows must be a whole number, at least 0, or None for no limit, not the text 'lots'",
    ),
    "a number below 0": Case(
        {"limits": {"max_rows": -1}},
        LOAD,
        InputError,
        "limits: max_rows must be a whole number, at least 0, or None for no limit, not -1",
    ),
    "a cost that is no number": Case(
        {"limits": {"max_cost": float("nan")}},
        LOAD,
        InputError,
        "limits: max_cost must be a number of credits, at least 0, or None for no limit, not nan",
    ),
    "a share above 1": Case(
        {"limits": {"max_invalid": 1.5}, "on_invalid": "skip"},
        LOAD,
        InputError,
        "limits: max_invalid must be a whole number of rows, a share below 1, or None for no limit, not 1.5",
    ),
    "no requests at once": Case(
        {"concurrency": 0}, LOAD, InputError, "concurrency must be a whole number, 1 to 1000, not 0"
    ),
    "more messages than a request takes": Case(
        {"chunk_size": 101}, LOAD, InputError, "chunk_size must be a whole number, 1 to 100, not 101"
    ),
    "no requests a second": Case(
        {"max_requests_per_second": 0},
        LOAD,
        InputError,
        "max_requests_per_second must be a number above 0, or None for no limit, not ",
    ),
    "a policy that does not exist": Case(
        {"on_unknown": "retry"},
        LOAD,
        InputError,
        "on_unknown must be one of fail, reconcile, resend, not the text 'retry'",
    ),
    "another policy that does not exist": Case(
        {"on_invalid": "ignore"}, LOAD, InputError, "on_invalid must be 'fail' or 'skip', not the text 'ignore'"
    ),
    "hours in words": Case(
        {"send_window": "09:00-17:00"},
        LOAD,
        InputError,
        "send_window must be a SendWindow, or None for any hours, not the text",
    ),
    "a report that is called CSV": Case(
        {"report": "FOLDER/report.csv"},
        LOAD,
        InputError,
        "report is written as Parquet, so its name may not end with .csv: use a name that ends with .parquet",
    ),
    "a report that is called a workbook once it is rendered": Case(
        {"report": "FOLDER/{{ run_id }}.XLSX"},
        FAILS,
        AirflowFailException,
        "report is written as Parquet, so its name may not end with .xlsx: use a name that ends with .parquet",
    ),
    "an argument that is misspelt": Case(
        {"max_row": 5},
        LOAD,
        MISSPELT,
        "Invalid arguments were passed to BulkSmsOperator (task_id: t). Invalid arguments were:\n**kwargs: "
        "{'max_row': 5}",
    ),
    "opt-outs that do not exist": Case(
        {"suppress": "FOLDER/none.csv"},
        FAILS,
        AirflowFailException,
        "suppress: FOLDER/none.csv: there is no such file or directory",
    ),
    "an empty path of opt-outs": Case(
        {"suppress": ""}, LOAD, InputError, f"suppress: recipients cannot be read from an empty text: {PASS}"
    ),
    "opt-outs of another kind": Case(
        {"suppress": 5}, LOAD, InputError, f"suppress: recipients cannot be read from int: {PASS}"
    ),
    "opt-outs without the column": Case(
        {"suppress": "FOLDER/numbers.csv"},
        FAILS,
        AirflowFailException,
        "FOLDER/numbers.csv: suppress: the list has no column 'destination'; it has 'mobile', 'landline'. Name the "
        "column with the numbers 'destination', or pass it alone",
    ),
    "more rows than allowed": Case(
        {"limits": {"max_rows": 0}},
        FAILS,
        AirflowFailException,
        "The source has more rows than max_rows=0. Nothing was sent. Is it the right source? If so, raise max_rows",
    ),
    "a higher cost than allowed": Case(
        {"limits": {"max_cost": 0.5}},
        FAILS,
        AirflowFailException,
        "The message costs about 1 credit, more than max_cost=0.5. Nothing was sent. Send to fewer people or "
        "less text, or raise max_cost",
    ),
    "too little credit": Case(
        {"sms_conn_id": "poor", "on_low_balance": "fail"},
        RETRIED,
        AirflowException,
        "The balance is 0, and the 1 message costs about 1 credit, so nothing was sent. Top up, or set "
        "on_low_balance='wait' to wait for credit without a slot",
    ),
    # Connections
    "no connection": Case(
        {"sms_conn_id": None},
        LOAD,
        InputError,
        f"{SMS_ID}, not None",
    ),
    "an empty name of the connection": Case(
        {"sms_conn_id": ""},
        LOAD,
        InputError,
        f"{SMS_ID}, not the text ''",
    ),
    "a connection that is no text": Case(
        {"sms_conn_id": 5},
        LOAD,
        InputError,
        f"{SMS_ID}, not 5",
    ),
    "no such connection": Case(
        {"sms_conn_id": "nowhere"},
        RETRIED,
        AirflowException,
        f"Connection 'nowhere' does not exist, {LOOK_UP} a connection of type sms",
    ),
    "a connection without a host": Case(
        {"sms_conn_id": "hostless"},
        FAILS,
        AirflowFailException,
        "Connection 'hostless' has no host: put the base URL there, for example https://rest.example.com/v1",
    ),
    "a connection without a token": Case(
        {"sms_conn_id": "tokenless"},
        FAILS,
        AirflowFailException,
        "Connection 'tokenless' has no password: put the bearer token there",
    ),
    "a scheme that is misspelt": Case(
        {"sms_conn_id": "htp"},
        FAILS,
        AirflowFailException,
        "Connection 'htp': host must begin with https:// or http://, not with htp://",
    ),
    "a time-out in words": Case(
        {"sms_conn_id": "soon"},
        FAILS,
        AirflowFailException,
        "Connection 'soon': extra timeout must be a number of seconds above 0",
    ),
    "a wrong token": Case(
        {"sms_conn_id": "wrong"},
        FAILS,
        AirflowFailException,
        "Sending ended early: bulkmessages: the service did not accept the token or the credentials (HTTP 401, "
        "AuthenticationToken.Invalid): the bearer token is missing or wrong (connection 'wrong', host "
        "127.0.0.1:",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the cases."""
    (tmp_path / "empty").mkdir()
    header = "destination,first_name,amount\n"
    good = f"{header}{NUMBER},Thandeka,12.5\n"
    texts = {
        "good.csv": good,
        "people.xlsx": f"PK\x03\x04{good}",
        "people.json": json.dumps([ROW]),
        "people.txt": good,
        "people": good,
        "nothing.csv": "",
        "header.csv": header,
        "headless.csv": f"{NUMBER},Thandeka,12.5\n",
        "ragged.csv": f"{good}{NUMBER},Thandeka,12.5,again\n",
        "twice.csv": f"destination,destination\n{NUMBER},{NUMBER}\n",
        "csv.parquet": good,
        "broken.jsonl": f'{{"destination": "{NUMBER}"}}\n{{"destination": "278298',
        "numbers.csv": f"mobile,landline\n{NUMBER},{NUMBER}\n",
        "other.csv": f"mobile\n{NUMBER}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.csv").write_bytes(good.replace("Thandeka", "Zoë").encode("latin-1"))
    parquet.write_table(table(), tmp_path / "broken.parquet")
    whole = (tmp_path / "broken.parquet").read_bytes()
    (tmp_path / "broken.parquet").write_bytes(whole[: len(whole) // 2])
    return tmp_path


@pytest.fixture
def connections(sms_sandbox: SmsSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections of the cases, beside ``sms_default``."""
    sms_sandbox.connect("wrong", password="wrong-token-4711")
    sms_sandbox.connect("hostless", host=None)
    sms_sandbox.connect("tokenless", password=None)
    sms_sandbox.connect("htp", host="htp://127.0.0.1/v1")
    sms_sandbox.connect("soon", extra={"timeout": "soon"})
    sms_sandbox.connect("poor")
    monkeypatch.setenv("AIRFLOW_CONN_LITE", json.dumps({"conn_type": "sqlite", "host": ":memory:"}))
    down = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "sms", "login": "sms"}
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", json.dumps(down))
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0")


def placed(value: Any, folder: Path) -> Any:
    """Return an option with the folder's path in it."""
    if isinstance(value, list):
        return [placed(each, folder) for each in value]
    return value.replace("FOLDER", str(folder)) if isinstance(value, str) else value


def shown(case: Case, output: str) -> list[str]:
    """Return the numbers and secrets of a case that an output shows."""
    given = {digits for digits in re.findall(r"\d{7,}", repr(case.options)) if digits not in repr(case.words)}
    return sorted(secret for secret in {NUMBER, LOCAL, "token-4711", *given} if secret in output)


def context_of(task: BulkSmsOperator) -> dict[str, Any]:
    """Return what a task needs of Airflow's context."""
    names = {"dag_id": task.dag_id, "task_id": task.task_id, "run_id": "manual"}
    of_ti = {"id": uuid4(), "map_index": -1, "try_number": 1, "xcom_push": Mock(), "xcom_pull": Mock(return_value=None)}
    ti = SimpleNamespace(**names, **of_ti)
    run = SimpleNamespace(**names, conf={}, triggering_user_name="ann")
    return {"ti": ti, "task_instance": ti, "task": task, "dag_run": run, "run_id": "manual", "params": {}}


def said_of(case: Case, folder: Path) -> tuple[str, Exception]:
    """Return when the mistake was found, and its error."""
    options = {"source": [ROW], "message": "Hi", "campaign": "c", **case.options}
    try:
        made = BulkSmsOperator(task_id="t", **{name: placed(value, folder) for name, value in options.items()})
    except Exception as error:  # noqa: BLE001  # whatever it is, it is judged
        return LOAD, error
    context: Any = context_of(made)
    made.render_template_fields(context)
    with pytest.raises(Exception) as raised:
        made.execute(context)
    when = FAILS if isinstance(raised.value, AirflowFailException) else RETRIED
    return when, raised.value


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told(name: str, folder: Path, connections: None, sms_sandbox: SmsSandbox) -> None:
    """The error comes as early as it can, alone, has its class and its words, hides numbers and texts nobody."""
    case = CASES[name]
    if case.options.get("sms_conn_id") == "poor":
        sms_sandbox.service.state.set_balance(0)
    with everything_logged() as output:
        when, error = said_of(case, folder)
    words = str(error)
    assert (when, type(error)) == (case.when, case.error), words
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert words.replace(str(folder), "FOLDER")[: len(case.words)] == case.words
    assert shown(case, f"{words}{output.getvalue()}") == []
    assert sms_sandbox.texts() == {}


KINDS = {case.error: name for name, case in CASES.items() if case.when == FAILS} | {
    f"{case.when}, {case.words[:20]}": name for name, case in CASES.items() if case.when == RETRIED
}
"""A mistake of each class of errors that a task does not try again, and each that it does."""


@pytest.mark.parametrize("name", KINDS.values())
def test_a_mistake_in_a_run_is_tried_again_only_where_that_may_help(
    name: str, folder: Path, connections: None, sms_default: object, sms_sandbox: SmsSandbox
) -> None:
    """With two retries in Airflow: how often it tried, with a traceback a try; rendered fields hide the number, too."""
    case = CASES[name]
    if case.options.get("sms_conn_id") == "poor":
        sms_sandbox.service.state.set_balance(0)
    options = {"source": [ROW], "message": "Hi", "campaign": "c", **case.options}
    made = {option: placed(value, folder) for option, value in options.items()}
    ran = run_task(lambda: BulkSmsOperator(task_id="send", **made), retries=2)
    assert (ran.state, ran.tries) == ("failed", 1 if case.when == FAILS else 3)
    assert case.words.partition("FOLDER")[0] in ran.log
    # No error stands behind another one.
    assert re.findall("direct cause of the following|During handling of the above", ran.log) == []
    tracebacks = ran.log.count("Traceback (most recent call last)")
    assert tracebacks == ran.tries
    assert shown(case, f"{ran.log}{ran.rendered}") == []
