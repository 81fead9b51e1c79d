from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import text

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.service.responses import Balance
from airflow_provider_sms.stop_flag import StopFlag
from support.postgres import connection_of
from support.sending import KEY, Clock, Sending, Service, claimant


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service():
    return Service()


@pytest.fixture(scope="session")
def ledger_file(tmp_path_factory):
    """A file in which the ledger has been made: a copy of it takes a third of making another."""
    made = tmp_path_factory.mktemp("made") / "ledger.db"
    open_sqlite(made).close()
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_place(request, tmp_path):
    """The place of this test's ledger, in which nothing is: a file, or a database on a server."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_ledger_url")
    return Path(shutil.copy(request.getfixturevalue("ledger_file"), tmp_path))


@pytest.fixture
def open_store(ledger_place):
    """Open this test's ledger, as another process would; in each kind of database."""
    with ExitStack() as opened:
        open_it = open_sqlite if isinstance(ledger_place, Path) else open_postgres
        yield lambda **how: opened.enter_context(closing(open_it(ledger_place, **how)))


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture(params=["sqlite", "postgresql"])
def configured_store(request, ledger_path, airflow_home, monkeypatch):
    """An empty ledger, as the configuration names it: in a file, or on a server."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_ledger_url")
        monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", connection_of(url))
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")
    with closing(open_ledger(None)) as store:
        yield store


@pytest.fixture
def rows(store):
    """Return the rows of a query of this test's ledger."""

    def rows(query):
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return rows


@pytest.fixture
def open_reader(open_store):
    """Open this test's ledger, once it is made, as a page does."""
    return lambda read_seconds=10.0: open_store(create=False, read_seconds=read_seconds)


@pytest.fixture
def enter(store, clock):
    """Enter the campaign as another try."""

    def enter(try_number=1, *, campaign="c", into=store, clock=clock, claimant_id=None, **changes):
        who = claimant(try_number, **changes)
        return CampaignLedger(into, campaign, who, clock=clock, claimant_id=claimant_id)

    return enter


@pytest.fixture
def sender(service, enter):
    """Make a send whose waits take no time, though its clock goes on."""
    slept = [0.0]

    def sender(ledger=None, *, stop=None, post=service, reconciliation=None, on_unknown="fail", **options):
        ledger, stop = ledger or enter(), stop or StopFlag()
        store = ledger._store
        chosen = {"post_seconds": 5.0, "concurrency": 2, "monotonic": lambda: time.monotonic() + sum(slept), **options}
        store.patience = Patience(store.patience.seconds, stop, slept.append, chosen["monotonic"])
        if reconciliation is None:
            balance = Balance(Decimal(1000), post_paid=False)
            reconciliation = Reconciliation(store, "c", KEY, lambda: balance)
        pause = chosen.pop("pause", lambda seconds: time.sleep(min(seconds, 0.005)))
        settle = Settle(ledger, reconciliation, on_unknown, stop, pause, monotonic=chosen["monotonic"])
        chosen.update(reconciles=on_unknown == "reconcile", holds=settle.holds, backoff=Backoff(attempts=4, base=0.001))
        return Sending(ledger, Sender(ledger, post, stop=stop, **chosen), settle)

    return sender
