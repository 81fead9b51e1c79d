"""A send on two Celery workers, with the settings of ``docs/deploy``: ``make several-machines``."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress

import psutil
import pytest
from support.machines.engine import running_engine
from support.machines.send import OF_WORKER, start_send
from support.processes import processes_below

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
CUT_SECONDS = 60.0
REQUIRED = "SMS_TESTS_NEED_MACHINES"
"""Environment variable; when it is set, a missing server fails the tests instead of skipping them."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Run one Airflow for all tests, of which nothing is left at the end."""
    if shutil.which("redis-server") is None and REQUIRED not in os.environ:
        pytest.skip("redis-server is not installed")
    folder = tmp_path_factory.mktemp("machines")
    with running_engine(folder) as engine:
        yield engine
    database = engine.services.database.folder
    assert (processes_below(folder), processes_below(database), database.exists()) == ([], [], False)


def test_a_worker_that_is_killed_leaves_unknown_what_it_had_in_flight(engine):
    """Its tasks go on elsewhere; nobody is texted twice or lost, and a task fails on unknown people alone."""
    send = start_send(engine, "worker_killed")
    engine.workers["worker-1"].kill()
    figures = send.await_end()
    assert (figures.broken, send.unexcused()) == (0, 0)
    assert figures.unknown <= OF_WORKER
    assert max(send.attempts()) > 1


def test_a_worker_that_is_cut_off_from_the_ledger_records_its_requests_later(engine):
    """Nobody is texted twice, lost or unknown after a minute in which nothing passed to or from PostgreSQL."""
    send = start_send(engine, "loses_database_60")
    link = engine.workers["worker-1"].database
    link.fall_silent()
    time.sleep(CUT_SECONDS)
    ended = time.time()
    link.speak()
    figures = send.await_end()
    assert (figures.broken, figures.unknown, send.unexcused()) == (0, 0, 0)
    assert send.held_until(ended) > 0


def test_a_restart_of_the_database_fails_no_attempt(engine):
    """Nobody is texted twice, lost or unknown, every task succeeds, and no attempt has failed because of the ledger.

    Airflow's own database restarts with it: an attempt that loses Airflow's API may be tried again.
    """
    send = start_send(engine, "database_restarted")
    engine.services.database.stop()
    stopped = time.time()
    engine.services.database.start()
    figures = send.await_end()
    assert (figures.broken, figures.unknown, send.unexcused()) == (0, 0, 0)
    assert [each for each in send.errors() if "ledger" in each.lower()] == []
    assert send.held_until(stopped) > 0


def test_no_other_machine_reaches_an_engine(engine):
    """Airflow, its workers, the services and the relays to them listen on 127.0.0.1 and on no other address."""
    database = engine.services.database
    processes = [*processes_below(engine.folder), *processes_below(database.folder), psutil.Process()]
    places = set()
    for process in processes:
        with suppress(psutil.Error):
            places.update(tuple(each.laddr) for each in process.net_connections("tcp") if each.status == "LISTEN")
    assert database.address in places
    assert {host for host, _ in places} == {"127.0.0.1"}
