"""What time it is for a ledger, whatever is done to the clocks of machines."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text
from support.sending import Clock, claimant, counted, failing, people

from airflow_provider_sms.exceptions import UnknownOutcomeError
from airflow_provider_sms.ledger import postgres_engine
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.service.elapsed import elapsed

HOUR = 3600.0


@pytest.fixture
def step(monkeypatch):
    """Set the machine's clock forward or back, for all that asks for it from then on."""
    real = time.time

    def step(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return step


@pytest.mark.parametrize("opened", ["before", "after"])
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_servers_ledger_has_its_time_however_this_machines_clock_is_set(postgres_ledger_url, step, opened, seconds):
    """A second attempt waits for the requests of the first one as long as if its clock had not been set.

    Nor does a request under way become unknown on a page.
    """
    page = {"create": False, "read_seconds": 10.0}
    if opened == "after":
        step(seconds)
    with (
        closing(open_postgres(postgres_ledger_url)) as store,
        closing(open_postgres(postgres_ledger_url, **page)) as reader,
    ):
        with store.read() as connection:
            now = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar())
        step(seconds)
        assert [store.clock(), reader.clock()] == pytest.approx([now, now], abs=60)


def test_a_process_that_was_stopped_posts_nothing_although_the_time_is_set_back(open_store, sender, service):
    """Its claim has lapsed, and its people were texted by another: the ledger's time does not bring the claim back."""
    wall, up = Clock(1_700_000_000.0), Clock(500.0)

    def send_of(try_number, **options):
        ledger = CampaignLedger(open_store(), "c", claimant(try_number), clock=wall, elapsed=up)
        return sender(ledger, post_seconds=35.0, concurrency=1, **options)

    def ask():
        # The process is stopped, with the answer to its free question in its hands.
        wall.now, up.now = wall.now + 400.0, up.now + 400.0
        send_of(2, on_unknown="resend").run(people(20))
        wall.now -= HOUR
        send.ledger.lapses_at += HOUR  # it has claimed another request meanwhile

    service.script = [failing(UnknownOutcomeError("lost"))]
    send = send_of(1, ask=ask)
    send.run(people(20))
    assert (service.duplicates, len(service.taken)) == (0, 20)
    # It sees that those of its lost request were texted meanwhile, too.
    assert (counted(send), send.error) == ({"already_sent": 20}, None)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_elapses_while_the_machine_sleeps(monkeypatch):
    """The clock is the one that counts from the machine's start: others stand still in a sleep, or can be set."""
    slept = {time.CLOCK_BOOTTIME: 3700.0, time.CLOCK_MONOTONIC: 100.0}
    monkeypatch.setattr(time, "clock_gettime", slept.__getitem__)
    assert elapsed() == 3700.0


def test_a_servers_time_is_that_of_when_the_lock_was_had(postgres_url, monkeypatch):
    """A deadline counts from the end of the wait for others, by the server's clock alone."""
    monkeypatch.setattr(postgres_engine, "elapsed", lambda: 0.0)
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    store, other = open_postgres(postgres_url), open_postgres(postgres_url)
    found = []

    def write():
        with store.write(7):
            found.append(store.clock())

    waiting = threading.Thread(target=write)
    with engine.connect() as server:
        with other.write(7):
            waiting.start()
            waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            while not server.execute(waits).scalar():
                time.sleep(0.01)
            released = server.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar()
        waiting.join(60)
    assert found[0] >= float(released)
    engine.dispose()
    store.close()
    other.close()
