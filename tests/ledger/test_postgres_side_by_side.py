from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text
from support.sending import chunk_of, claim, claimant, close, people

from airflow_provider_sms.exceptions import LedgerBusyError
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.attempts import note_progress
from airflow_provider_sms.ledger.backend import Patience, campaign_lock
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import close_by_balance, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.purge import old_campaigns, purge

LOCK = campaign_lock("spring")
WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


@pytest.fixture
def another(postgres_url):
    """The ledger as another task sees it."""
    with closing(open_postgres(postgres_url)) as store:
        yield store


@pytest.fixture
def store(postgres_url):
    """A ledger that does not wait long for others."""
    with closing(open_postgres(postgres_url, busy_seconds=0.3)) as store:
        store.patience = Patience(0.0)
        yield store


def entered(store):
    return CampaignLedger(store, "spring", claimant())


def test_claims_outcomes_and_notes_of_one_campaign_go_side_by_side(store, another):
    """What writes no rows but those of its own requests waits for nobody who does the same, nor for its own notes."""
    ledger = entered(store)
    accepted, unknown = claim(ledger, people(2)), claim(ledger, people(2, 2))
    note_progress(store, "spring", ledger._claimant_id, "checking")
    with another.write(LOCK, shared=True) as connection:
        note_progress(store, "spring", ledger._claimant_id, "sending")
        assert connection.execute(text("UPDATE sms_attempt SET state = 's' RETURNING id")).scalars().all()
        outcomes = [Outcome(accepted, ACCEPTED, event_id=1, messages=2), Outcome(unknown, UNKNOWN)]
        assert ledger.commit(outcomes=outcomes, chunks=[chunk_of(people(2, 4))], claim_seconds=60.0)[0].won == range(2)


PROOF = KeptEvidence("not_charged", "Nothing was charged for it.", 1.0)
WRITES = {
    "release": lambda ledger, request_id: close(ledger, request_id, NOT_SENT),
    "supersede": lambda ledger, request_id: ledger.supersede([request_id]),
    "come late": lambda ledger, request_id: close(ledger, request_id, event_id=1, messages=2),
    "decide": lambda ledger, request_id: resolve(ledger._store, request_id, NOT_SENT, "Ann"),
    "balance": lambda ledger, request_id: close_by_balance(ledger._store, "spring", {request_id: (NOT_SENT, PROOF)}),
    "pause": lambda ledger, _: pause(ledger._store, "spring", "Ann"),
    "purge": lambda ledger, _: purge(ledger._store, [old_campaigns(ledger._store, 4e9)[0]._replace(keep=None)], 4e9),
    "finish": lambda ledger, request_id: ledger.finish([Outcome(request_id, ACCEPTED, event_id=1, messages=2)]),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_touches_rows_of_other_requests_goes_alone(store, another, write, monkeypatch):
    """Messages that are released, decided about or forgotten are nobody else's to claim meanwhile; nor is a pause."""
    monkeypatch.setattr("airflow_provider_sms.ledger.claims.FINISH_PATIENCE", 0.3)
    ledger = entered(store)
    request_id = claim(ledger, people(2))
    close(ledger, request_id, UNKNOWN)
    if write == "come late":
        ledger.supersede([request_id])
    with another.write(LOCK, shared=True), pytest.raises(LedgerBusyError):
        WRITES[write](ledger, request_id)
    WRITES[write](ledger, request_id)


def test_a_claim_waits_for_whoever_goes_alone(store, another):
    """A pause, a decision and a purge are never beside a claim; nor is a worker of an older version."""
    ledger = entered(store)
    with another.write(LOCK), pytest.raises(LedgerBusyError):
        claim(ledger, people(2))


def test_the_same_people_in_any_order_are_claimed_once(postgres_url, another):
    """Claims of the same messages wait for each other one way only, however the tables are ordered."""
    first, middle, last = sorted(people(3), key=lambda each: each.key)
    orders = [[first, middle, last], [last, middle, first]]
    watch = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    stores = [open_postgres(postgres_url) for _ in orders]
    won = []

    def run(ledger, messages):
        won.append(len(ledger.commit(chunks=[chunk_of(messages)], claim_seconds=60.0)[0].won))

    # Whoever enters the campaign goes alone: both have done so.
    ledgers = [entered(store) for store in stores]
    threads = [threading.Thread(target=run, args=pair) for pair in zip(ledgers, orders, strict=True)]
    with another._engine.connect() as connection, watch.connect() as server:
        # Somebody else's row, in the middle of both orders, which then was never there.
        campaign_id = connection.execute(text("SELECT id FROM sms_campaign")).scalar()
        values = {"campaign": campaign_id, "key": middle.key}
        connection.execute(text("INSERT INTO sms_message VALUES (:campaign, :key, 27820000000, 1)"), values)
        for thread in threads:
            thread.start()
        until = time.monotonic() + 10.0
        while server.execute(WAITING).scalar() < len(threads) and time.monotonic() < until:
            time.sleep(0.01)
        connection.rollback()
    for thread in threads:
        thread.join(30.0)
    for store in stores:
        store.close()
    watch.dispose()
    assert sorted(won) == [0, 3]


def test_two_writers_who_wait_for_each_other_are_told_to_try_again(postgres_url, another):
    """The server ends one of them: nothing of it has happened, so it is no failure."""
    other = open_postgres(postgres_url)
    held = threading.Barrier(2, timeout=10.0)
    ends = []

    def wait_both_ways(store, mine, theirs):
        try:
            with store.write(mine) as connection:
                held.wait()
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": theirs})
        except LedgerBusyError as error:
            ends.append(str(error))
        else:
            ends.append("committed")

    thread = threading.Thread(target=wait_both_ways, args=(other, 7, 8))
    thread.start()
    wait_both_ways(another, 8, 7)
    thread.join(30.0)
    assert sorted(ends) == ["The ledger is busy: the server undid a write that waited for another one", "committed"]
    other.close()
