from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import adbc_driver_sqlite.dbapi
import duckdb
import pyarrow as pa
import pytest
from airflow.providers.common.compat.sdk import BaseHook
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.providers.postgres.hooks import postgres as of_postgres
from sqlalchemy import create_engine, text
from support.keys import request_of
from support.pages import ROOT, blocks
from support.sending import claimant, people

from airflow_provider_sms.exceptions import InputError, SourceError, SourceUnavailableError
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.recipients.sources import open_source

PEOPLE = {"destination": ["27820000001", "27820000002", None], "n": [1, 2, 3]}
CREATE = "CREATE TABLE people (destination TEXT, n INTEGER)"
INSERT = "INSERT INTO people VALUES ('27820000001', 1), ('27820000002', 2), (NULL, 3)"
SELECT = "SELECT destination, n FROM people"


def read(source):
    opened, seen = source.open(), []
    batches = list(open_source(opened).batches(check=seen.append))
    return pa.Table.from_batches(batches, seen[0]).to_pydict()


def failure(source, expected=SourceError):
    """Return the words of the error of reading, which leads to no error of the driver's."""
    with pytest.raises(expected) as caught:
        read(source)
    assert type(caught.value) is expected
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.fixture
def connect(airflow_home, monkeypatch):
    """Define an Airflow connection, and return its id."""

    def connect(conn_id="people_db", **fields):
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))
        return conn_id

    return connect


@pytest.fixture
def sqlite(connect, tmp_path):
    """A connection to a SQLite database with people."""
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(CREATE)
        connection.execute(INSERT)
    return connect(conn_type="sqlite", host=str(path))


@pytest.fixture
def run_in_postgres(postgres_url):
    """Run statements in a PostgreSQL database of this test's own."""

    def run(*statements):
        engine = create_engine(postgres_url)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))
        engine.dispose()

    return run


@pytest.fixture
def postgres(connect, postgres_url, run_in_postgres):
    """A connection to a PostgreSQL database with people."""
    run_in_postgres(CREATE, INSERT)
    return connect(
        conn_type="postgres",
        host=postgres_url.query.get("host", postgres_url.host),
        login=postgres_url.username,
        password=postgres_url.password,
        port=postgres_url.port,
        schema=postgres_url.database,
    )


@pytest.mark.parametrize(("database", "mark", "named"), [("sqlite", "?", ":n"), ("postgres", "%s", "%(n)s")])
def test_the_rows_of_a_query(request, database, mark, named):
    """With parameters of the driver's style; a percent sign stands for itself without any."""
    conn_id = request.getfixturevalue(database)
    assert read(SqlSource(conn_id, f"{SELECT} ORDER BY n;")) == PEOPLE
    assert read(SqlSource(conn_id, f"{SELECT} WHERE n = {mark}", [2])) == {"destination": ["27820000002"], "n": [2]}
    assert read(SqlSource(conn_id, f"{SELECT} WHERE n = {named}", {"n": 1}))["n"] == [1]
    assert read(SqlSource(conn_id, f"{SELECT} WHERE destination LIKE '%9'")) == {"destination": [], "n": []}
    assert read(SqlSource(conn_id, f"WITH p AS ({SELECT}) SELECT * FROM p WHERE n = 3"))["destination"] == [None]


def test_the_pages_query_finds_whom_other_campaigns_texted_within_a_week(postgres, postgres_url, run_in_postgres):
    """Neither people of the campaign itself nor those of long ago are on the list."""
    with closing(open_postgres(postgres_url)) as store:
        for n, campaign in enumerate(("last year", "summer-sale", "spring-sale")):
            (person,) = people(1, n)
            ledger = CampaignLedger(store, campaign, claimant(run_id=campaign))
            ledger.commit(chunks=[request_of([person.key], [person.destination])], claim_seconds=60.0)
    run_in_postgres(
        "UPDATE sms_request SET claimed_at = claimed_at - 8 * 86400 "
        "WHERE campaign_id = (SELECT id FROM sms_campaign WHERE name = 'last year')"
    )
    page = blocks(ROOT / "docs" / "before-sending.md", "python")
    (code,) = (block.code for block in page if block.code.startswith("suppress = SqlSource"))
    scope = {"SqlSource": lambda _, *query: SqlSource(postgres, *query)}
    assert read(eval(code.removeprefix("suppress = "), scope)) == {"destination": [int(people(1, 1)[0].destination)]}


def test_rows_that_the_connection_returns_as_dicts(postgres, connect):
    """A connection may be set up to return rows as dicts: the columns stay in their order."""
    cursor = "dictcursor" if getattr(of_postgres, "USE_PSYCOPG3", False) else "realdictcursor"
    connect(**json.loads(os.environ["AIRFLOW_CONN_PEOPLE_DB"]), extra={"cursor": cursor})
    assert read(SqlSource(postgres, f"{SELECT} ORDER BY n")) == PEOPLE


@pytest.mark.parametrize(
    "connected",
    [
        lambda _: duckdb.connect(),
        lambda path: adbc_driver_sqlite.dbapi.connect(str(path)),
        lambda path: sqlite3.connect(str(path)),
    ],
    ids=["DuckDB", "ADBC", "SQLite"],
)
def test_other_drivers(airflow_home, monkeypatch, tmp_path, connected):
    """Cursors that give Arrow and those that give rows give the same, and an empty result has its columns."""

    class ArrowHook(DbApiHook):
        conn_name_attr = "arrow_conn_id"
        default_conn_name = "arrow_default"

        def get_conn(self):
            connection = connected(tmp_path / "arrow.db")
            with closing(connection.cursor()) as cursor:
                cursor.execute(CREATE)
                cursor.execute(INSERT)
            return connection

    monkeypatch.setattr(BaseHook, "get_hook", lambda conn_id: ArrowHook(arrow_conn_id=conn_id))
    assert read(SqlSource("arrow", f"{SELECT} ORDER BY n")) == PEOPLE
    (tmp_path / "arrow.db").unlink(missing_ok=True)
    assert read(SqlSource("arrow", f"{SELECT} WHERE n > ?", [5])) == {"destination": [], "n": []}


@pytest.mark.parametrize(
    ("conn_type", "sql", "words"),
    [
        ("http", SELECT, "'people_db' is not a database: its hook HttpHook is not a DbApiHook"),
        (
            "no_such",
            SELECT,
            r"'people_db' has no hook: .*no_such.*\. Install .*, usually apache-airflow-providers-no-such$",
        ),
        ("sqlite", "  ", "source: .*statement"),
        ("sqlite", None, "source: .*statement"),
        ("sqlite", "people.sql", "source: sql is a statement; for that of a file, write"),
    ],
)
def test_what_can_be_no_query_is_refused_before_a_connection_is_made(connect, conn_type, sql, words):
    """A connection that reads no SQL, or has no provider, and a statement that is none, or a file that was not read."""
    with pytest.raises(InputError, match=words):
        SqlSource(connect(conn_type=conn_type, host="example.com"), sql).open()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC destination FROM people", "syntax error"),
        ("SELECT cell FROM people", "no such column"),
        ("SELECT * FROM nobody", "no such table"),
        ("CREATE TEMP TABLE t (n)", "returns no rows: a SqlSource takes a SELECT"),
        ("SELECT n, n FROM people", "more than one column is named 'n'"),
    ],
)
def test_a_wrong_statement_of_sqlite(sqlite, sql, words):
    """SQLite calls a typo an operational error; a retry would not help, as with no rows or two columns of one name."""
    assert words in failure(SqlSource(sqlite, sql))


def test_values_are_in_no_error(postgres):
    """Neither a row's value nor a parameter is quoted, as the driver's words would."""
    row = failure(SqlSource(postgres, "SELECT CAST('Thandeka ' || destination AS INTEGER) FROM people"))
    assert row.endswith("InvalidTextRepresentation (the driver's words are not shown, since they may quote a row)")
    parameter = failure(SqlSource(postgres, 'SELECT * FROM people WHERE "n" = %s AND nothing = %s', [1, "Thandeka"]))
    assert 'column "nothing" does not exist' in parameter
    for words in (row, parameter):
        assert "Thandeka" not in words
        assert "2782" not in words


@pytest.mark.parametrize("parameters", ["27820000001", 27820000001, {"27820000001"}, b"27820000001"])
def test_parameters_that_are_no_list_are_refused(sqlite, parameters):
    """A driver takes a text for a list of letters; the error shows no value."""
    words = failure(SqlSource(sqlite, f"{SELECT} WHERE destination = ?", parameters), InputError)
    assert words == (
        f"source: the parameters of a SqlSource must be a list, a tuple or a dict, not {type(parameters).__name__}: "
        "write [value] for a single one"
    )


@pytest.mark.slow
def test_a_database_that_is_locked(sqlite, connect):
    """It is worth a retry."""
    path = json.loads(os.environ["AIRFLOW_CONN_PEOPLE_DB"])["host"]
    connect(conn_type="sqlite", host=path, extra={"timeout": 0})
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "database is locked" in failure(SqlSource(sqlite, SELECT), SourceUnavailableError)


def test_a_parameter_that_the_driver_quotes(sqlite):
    """What a driver's words quote of the parameters, and any number, is masked."""
    words = failure(SqlSource(sqlite, 'SELECT * FROM "27820000001" WHERE n = ?', [5]))
    assert words == "source: the query of connection people_db failed: OperationalError: no such table: 2782*****01"
    words = failure(SqlSource(sqlite, "SELECT * FROM Thandeka WHERE n = ?", ["Thandeka"]))
    assert words == "source: the query of connection people_db failed: OperationalError: no such table: *****"


def test_a_database_that_is_down(connect):
    """It is worth a retry, and the error names the connection."""
    connect(conn_type="postgres", host="127.0.0.1", port=1, login="someone", password="secret", schema="people")
    words = failure(SqlSource("people_db", SELECT), SourceUnavailableError)
    assert words.startswith("source: the query of connection people_db failed: OperationalError: ")
    assert "secret" not in words


def test_what_is_shown():
    """The statement is shown with its numbers masked, dates in it are not numbers, and parameters are not shown."""
    source = SqlSource("warehouse", "SELECT * FROM p WHERE day = '2026-03-01' AND m <> '27820000001'", ["Thandeka", 5])
    shown = "SqlSource of connection warehouse: SELECT * FROM p WHERE day = '2026-03-01' AND m <> '2782*****01'"
    assert {repr(source), str(source), source.serialize()} == {shown}
    assert repr(SqlSource("warehouse", "SELECT 1")) == "SqlSource of connection warehouse: SELECT 1"


MEASURE = """
import resource, sys
from airflow_provider_sms.hooks.sql_source import SqlSource
from airflow_provider_sms.recipients.sources import open_source
rows = int(sys.argv[2])
source = open_source(SqlSource("people_db", sys.argv[1], [rows]).open())
assert sum(len(batch) for batch in source.batches()) == rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def mebibytes(sql, rows):
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, sql, str(rows)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout.split()[-1])


COLUMNS = "27820000000 + n AS destination, 'A text that weighs something ' || n AS text"
SERIES = {
    "sqlite": f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT ?) SELECT {COLUMNS} FROM s",
    "postgres": f"SELECT {COLUMNS} FROM generate_series(1, %s) AS s(n)",
}


@pytest.mark.slow
@pytest.mark.parametrize("database", SERIES)
def test_memory_does_not_grow_with_the_rows(request, database):
    """Ten times the rows take no more memory: a few MiB more, where they weigh forty."""
    request.getfixturevalue(database)
    sql = SERIES[database]
    assert mebibytes(sql, 500_000) < mebibytes(sql, 50_000) + 15
