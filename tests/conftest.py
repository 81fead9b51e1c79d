from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import tempfile
from functools import partial

import pytest
from hypothesis import settings
from support.browser import REQUIRED, NoBrowserError, running_browser
from support.leftovers import end_with_this_process
from support.memory import in_memory
from support.metrics import Recorder, install
from support.postgres import new_database, running_postgres, temporary_database

from airflow_provider_sms.ledger import postgres
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sending import sender

pytest_plugins = [
    "airflow_provider_sms.testing",
    "support.airflow_home",
    "support.ledger_fixtures",
    "support.shuffle",
    "support.task_fixtures",
]
TOKEN = "sandbox-token-0123"

end_with_this_process()

# How long an example takes says how busy the machine is: of the package's speed `make bench` tells.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# To look for garbage among all that Airflow and pandas keep takes half a second each time.
gc.set_threshold(50_000, 20, 100)

# All that tests write, and what they start, is in memory where there is room, unless the developer has said otherwise.
if "TMPDIR" not in os.environ and (memory := in_memory()):
    os.environ["TMPDIR"] = tempfile.tempdir = str(memory)

# Airflow reads its environment when it is first imported: nothing of the developer's own may reach it.
for name in [name for name in os.environ if name.startswith(("AIRFLOW", "_AIRFLOW"))]:
    del os.environ[name]
os.environ.update({"AIRFLOW__CORE__UNIT_TEST_MODE": "False", "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO"})

# Under nohup this process ignores SIGHUP, and in the background of a script SIGINT. So would each program that a test
# starts and then tells to stop.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def sms_sandbox_config():
    """The settings of each test's sandbox: its token, and credit for everything."""
    return SandboxConfig(token=TOKEN, balance=100_000)


@pytest.fixture
def sms_only_on_this_machine():
    """Ledgers on a server, and services that are away, are the subject of tests here."""


@pytest.fixture
def sandbox(sms_sandbox):
    """The service on this machine, with a witness."""
    return sms_sandbox.service


@pytest.fixture
def sms_default(airflow_home, sms_sandbox, monkeypatch):
    """The connection ``sms_default`` to the sandbox; call it to change fields. A wait for credit looks often."""
    monkeypatch.setattr("airflow_provider_sms.execution.waits.INTERVAL_SECONDS", 0.1)
    return partial(sms_sandbox.connect, "sms_default")


@pytest.fixture
def short_claims(monkeypatch, sms_default):
    """Claims that lapse soon, and with them the time in which a lost request may be charged for."""
    sms_default(extra={"timeout": 1.0, "connect_timeout": 0.5})
    monkeypatch.setattr(sender, "MARGIN_SECONDS", 0.2)


@pytest.fixture
def ledger_path(sms_ledger_path):
    """A ledger of this test's own."""
    return sms_ledger_path


@pytest.fixture
def audit_rows(airflow_home):
    """Return the package's rows of Airflow's audit log, as event, user, DAG and details; those of earlier tests go."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import delete, select

    with create_session() as session:
        session.execute(delete(Log))

    def rows():
        query = select(Log.event, Log.owner, Log.dag_id, Log.extra).where(Log.event.like("%sms%")).order_by(Log.id)
        with create_session() as session:
            return [(event, owner, dag_id, json.loads(extra)) for event, owner, dag_id, extra in session.execute(query)]

    return rows


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this test session's own, on a socket in its own folder."""
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def patient_servers():
    """Servers of ledgers wait as long as they may for this machine, which may be busy and has not vanished."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "IDLE_SECONDS", 3600.0)
        yield


@pytest.fixture
def postgres_url(postgres_server, patient_servers):
    """An empty database of this test's own."""
    with temporary_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def ledger_template(postgres_server):
    """The name of a database in which the ledger has been made: a copy of it takes half as long as making another."""
    made = new_database(postgres_server)
    open_postgres(made).close()
    return made.database


@pytest.fixture
def postgres_ledger_url(postgres_server, patient_servers, ledger_template):
    """A database of this test's own, with a ledger in which nothing is."""
    with temporary_database(postgres_server, ledger_template) as url:
        yield url


@pytest.fixture
def metrics(monkeypatch):
    """What this test tells Airflow's metrics."""
    recorder = Recorder()
    install(recorder, monkeypatch)
    yield recorder
    install(Recorder(), monkeypatch)


@pytest.fixture(scope="module")
def browser():
    """A headless browser for the tests of a file, which are skipped where there is none."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(running_browser())
        except NoBrowserError as missing:
            if os.environ.get(REQUIRED):
                raise
            pytest.skip(f"no page can be opened here: {missing}")
        yield running
