from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import closing

import psycopg
import pytest
from airflow.providers.common.compat.sdk import Connection
from sqlalchemy.exc import OperationalError
from support.cluster import running_node, until

from airflow_provider_sms.exceptions import InputError, LedgerAwayError, LedgerError
from airflow_provider_sms.hooks.ledger import (
    configured_ledger_patience,
    ledger_reader,
    open_existing_ledger,
    open_ledger,
    postgres_url,
    refuse_several_machines,
)
from airflow_provider_sms.ledger import backend


@pytest.mark.parametrize(
    ("executor", "named"),
    [
        *((one, None) for one in ("LocalExecutor", "SequentialExecutor", "airflow.executors.x.LocalExecutor")),
        ("LocalExecutor;team_a=LocalExecutor;team_b=airflow.executors.x.LocalExecutor;", None),
        ("CeleryExecutor", "CeleryExecutor"),
        ("LocalExecutor,KubernetesExecutor", "KubernetesExecutor"),
        ("x:airflow.providers.amazon.aws.executors.ecs.AwsEcsExecutor", "AwsEcsExecutor"),
        ("LocalExecutor;team_a=CeleryExecutor", "CeleryExecutor"),
        ("CeleryExecutor;team_a=LocalExecutor", "CeleryExecutor"),
        ("LocalExecutor; team_a=batch:an.import.path.BatchExecutor ;team_b=LocalExecutor", "BatchExecutor"),
    ],
)
def test_only_one_machine_may_have_its_ledger_in_a_file(executor, named):
    """Where tasks run elsewhere, a file would be a ledger for each machine: it is refused, with what to set."""
    if named is None:
        refuse_several_machines(executor, {})
        named, environment = "KubernetesExecutor", {"AIRFLOW_IS_K8S_EXECUTOR_POD": "True"}
    else:
        environment = {}
    with pytest.raises(InputError, match=f"{named} runs tasks on several machines.*ledger_conn_id"):
        refuse_several_machines(executor, environment)


OF_THE_LIBRARY = {
    "sslmode": "verify-full",
    "keepalives": 0,
    "keepalives_idle": 77,
    "tcp_user_timeout": 5000,
    "connect_timeout": 3,
    "channel_binding": "require",
    "sslnegotiation": "direct",
    "target_session_attrs": "primary",
    "options": "-c search_path=sms",
}
OF_OTHERS = ["cursor", "iam", "sqlalchemy_query", "dbname", "password", "replication", "unheard_of"]


def test_what_is_the_databases_own_reaches_it_and_nothing_else():
    """The fields, and every extra of PostgreSQL's library, also one that is 0; not what is for Airflow."""
    fields = {"host": "db", "port": 5433, "login": "u", "password": "pass-word-1", "schema": "ledger"}
    connection = Connection(conn_id="c", conn_type="postgres", **fields)
    url = postgres_url(connection, {**OF_THE_LIBRARY, **dict.fromkeys(OF_OTHERS, "x")})
    assert url.set(drivername="x", query={}).render_as_string() == "x://u:***@db:5433/ledger"
    assert dict(url.query) == {name: str(value) for name, value in OF_THE_LIBRARY.items()}


@pytest.mark.parametrize("open_it", [open_ledger, open_existing_ledger])
def test_the_configuration_can_require_a_standby(sms_ledger, monkeypatch, open_it):
    """Where Airflow's configuration says so, a server without one is refused to tasks and people alike."""
    open_ledger("sms_ledger").close()
    monkeypatch.setenv("AIRFLOW__SMS__REQUIRE_SYNCHRONOUS_STANDBY", "True")
    with pytest.raises(LedgerError, match="waits for no standby"):
        open_it("sms_ledger")


@pytest.fixture
def sms_ledger(postgres_url, monkeypatch):
    """Point the connection ``sms_ledger`` at an empty database."""
    fields = {"conn_type": "postgres", "host": postgres_url.query["host"], "schema": postgres_url.database}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": postgres_url.username}))


@pytest.fixture(scope="module")
def running(patient_servers):
    """A server that a test may stop."""
    with running_node() as node:
        (node.data / "pg_hba.conf").write_text("local all ann scram-sha-256\nlocal all all trust\n")
        node.ask("CREATE ROLE ann LOGIN PASSWORD 'right'")
        node.ask("SELECT pg_reload_conf()")
        yield node


@pytest.fixture
def server(running, monkeypatch):
    """Point the connection ``sms_ledger`` at a ledger on that server, and see to it that it runs afterwards."""
    monkeypatch.setattr(backend, "RETRY_SECONDS", 0.05)
    fields = {"conn_type": "postgres", "host": str(running.folder), "port": running.port, "schema": "postgres"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": "postgres"}))
    open_ledger("sms_ledger").close()
    yield running
    running.stop()
    running.start()


@pytest.mark.parametrize("create", [True, False])
def test_a_task_waits_for_a_server_that_is_away(server, caplog, create):
    """A restart of the server costs no attempt; the log says once what the task waits for."""
    server.stop()
    caplog.clear()
    starting = threading.Timer(0.5, server.start)
    starting.start()
    open_ledger("sms_ledger", create=create).close()
    starting.join()
    assert [record.message.endswith("Trying again for up to 5 min") for record in caplog.records] == [True]


def test_a_read_that_meets_a_restarting_server_succeeds_once_it_is_back(server, monkeypatch):
    """The sessions that it had are over; a person is told at once."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")
    with (
        closing(open_ledger("sms_ledger")) as store,
        closing(open_existing_ledger("sms_ledger")) as of_person,
        closing(ledger_reader()) as of_page,
    ):
        count = "SELECT count(*) FROM sms_campaign"
        read = lambda each: each.exec_driver_sql(count).scalar()  # noqa: E731
        assert store.fetch(read) == of_person.fetch(read) == 0
        server.stop()
        for other in (of_person, of_page):
            with pytest.raises(LedgerAwayError), other.read() as connection:
                read(connection)
        starting = threading.Timer(0.5, server.start)
        starting.start()
        assert store.fetch(read) == 0
        starting.join()


def test_a_read_whose_connection_breaks_is_made_again(server):
    """Whatever words the driver has for it: here a statement meets a connection that is over."""
    breaks = [True]

    def read(each):
        if breaks:
            breaks.clear()
            each.connection.dbapi_connection.close()
        return each.exec_driver_sql("SELECT 1").scalar()

    with closing(open_ledger("sms_ledger")) as store:
        assert store.fetch(read) == 1


def test_a_server_is_waited_for_no_longer_than_the_patience_and_by_no_person(server, monkeypatch):
    """Then the error says what failed; a command or a page says at once that it is away."""
    server.stop()
    with pytest.raises(LedgerAwayError):
        open_existing_ledger("sms_ledger")
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", "0.3")
    with pytest.raises(LedgerAwayError, match=r"The ledger cannot be opened: OperationalError: .*failed"):
        open_ledger("sms_ledger")


@pytest.mark.parametrize(
    "words",
    [
        "failed to resolve host 'db': [Errno -3] Temporary failure in name resolution",
        "connection failed: FATAL:  sorry, too many clients already",
        "connection failed: FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_a_server_without_a_name_or_a_free_session_is_away(words):
    """Either is usual around a failover, when everybody connects again; the words are libpq's and PostgreSQL's."""
    with pytest.raises(LedgerAwayError), backend.ledger_errors("opened"):
        raise OperationalError("", {}, Exception(words))


def test_a_server_that_shuts_down_is_away(server):
    """It still answers, and takes no new session as long as an old one lasts."""

    def is_open():
        try:
            open_existing_ledger("sms_ledger").close()
        except LedgerAwayError as error:
            assert "shutting down" in str(error)  # noqa: PT017  # it opens until the server has heard of it
            return False
        return True

    with psycopg.connect(host=str(server.folder), port=server.port, user="postgres", dbname="postgres"):
        os.kill(int((server.data / "postmaster.pid").read_text().splitlines()[0]), signal.SIGTERM)
        until(lambda: not is_open())


@pytest.mark.parametrize(
    "wrong", [{"login": "ann", "password": "wrong"}, {"login": "nobody"}, {"schema": "no"}], ids=str
)
def test_a_wrong_connection_is_not_waited_for(server, monkeypatch, wrong):
    """Nothing but a person mends it, so the task fails at once."""
    fields = {"conn_type": "postgres", "host": str(server.folder), "port": server.port, "schema": "postgres"}
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**fields, "login": "postgres", **wrong}))
    with pytest.raises(LedgerError) as caught:
        open_ledger("sms_ledger")
    assert type(caught.value) is LedgerError


def test_an_option_that_is_neither_true_nor_false_is_named(monkeypatch):
    """Airflow's own error says it in a line that a task's log withholds."""
    monkeypatch.setenv("AIRFLOW__SMS__ALLOW_LOCAL_LEDGER", "maybe")
    with pytest.raises(InputError, match=r"^\[sms\] allow_local_ledger must be True or False, not 'maybe'$"):
        open_ledger(None)


def test_a_relative_path_is_in_airflows_home(airflow_home, monkeypatch, tmp_path):
    """Wherever a task happens to run, it finds the same ledger."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", "here.db")
    monkeypatch.chdir(tmp_path)
    open_ledger(None).close()
    assert ((airflow_home / "here.db").exists(), list(tmp_path.iterdir())) == (True, [])


def test_looking_makes_no_tables_on_a_server(sms_ledger):
    """A database that holds no ledger is an error, and still holds none when asked again."""
    for _ in range(2):
        with pytest.raises(InputError, match="holds no ledger"):
            open_existing_ledger("sms_ledger")


@pytest.mark.parametrize("opens", [open_ledger, open_existing_ledger])
def test_a_connection_that_is_not_there_is_named(airflow_home, monkeypatch, opens):
    """By the argument, or else the option, that names it; rows to which a template rendered the id are not quoted."""
    with pytest.raises(InputError, match=r"^ledger_conn_id: Airflow has no connection 'nowhere'"):
        opens("nowhere")
    with pytest.raises(InputError, match=r"2782\*\*\*\*\*67") as caught:
        opens("[{'destination': '27821234567', 'name': 'Thandeka'}]")
    assert "Thandeka" not in str(caught.value)
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "nowhere")
    with pytest.raises(InputError, match=r"^\[sms\] ledger_conn_id: Airflow has no connection 'nowhere'"):
        opens(None)


def test_a_person_may_look_where_tasks_run_on_several_machines(ledger_path, monkeypatch):
    """The guard keeps tasks from claiming in a file that others do not share; it keeps nobody from reading one."""
    open_ledger(None).close()
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    with pytest.raises(InputError, match="CeleryExecutor"):
        open_ledger(None)
    open_existing_ledger(None).close()


GIVEN = [(None, 300.0), ("", 300.0), ("0", 0.0), ("120.5", 120.5)]


@pytest.mark.parametrize(("configured", "seconds"), [*GIVEN, *((no, None) for no in ("-1", "inf", "nan", "two"))])
def test_the_patience_with_a_ledger_is_configured(monkeypatch, configured, seconds):
    """Five minutes unless somebody says otherwise; one without an end is refused, since a task would have none."""
    if configured is not None:
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATIENCE", configured)
    if seconds is None:
        with pytest.raises(InputError, match="ledger_patience must be a number of seconds"):
            configured_ledger_patience()
    else:
        assert configured_ledger_patience() == seconds
