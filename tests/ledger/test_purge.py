from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress

import pytest
from sqlalchemy import text
from support.sending import chunk_of, claimant, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger import purge as purging
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, DEFERRED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.purge import kept_words, old_campaigns, purge
from airflow_provider_sms.ledger.sqlite import open_sqlite

TABLES = ("sms_campaign", "sms_request", "sms_message", "sms_attempt", "sms_superseded")
LATER = 2_000_000.0


def claim(ledger, messages):
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=60.0)[0].request_id


def send(ledger, messages, state=ACCEPTED):
    request_id = claim(ledger, messages)
    ledger.commit(outcomes=[Outcome(request_id, state)])
    return request_id


@pytest.fixture
def counts(store):
    """Count the rows of each table."""

    def counts():
        with store.read() as connection:
            return tuple(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() for table in TABLES)

    return counts


def test_an_old_campaign_is_forgotten_wholly(store, enter, counts):
    """Messages, requests, decisions, the campaign itself, and the tries that only it referred to."""
    ledger = enter()
    send(ledger, people(3))
    resolve(store, send(ledger, people(2, 10), UNKNOWN), ACCEPTED, "ann")
    send(ledger, people(2, 20), NOT_SENT)
    assert counts() == (1, 3, 5, 1, 0)
    with store.write(1) as connection:
        connection.execute(text("UPDATE sms_request SET decided_at = 1000000 WHERE decided_at > 0"))
    (old,) = old_campaigns(store, LATER)
    assert (old.name, old.messages, old.keep) == ("c", 5, None)
    purged = purge(store, [old], LATER)
    assert (purged.campaigns, purged.messages, purged.attempts) == (1, 5, 1)
    assert counts() == (0, 0, 0, 0, 0)


def test_what_is_forgotten_may_be_sent_again(store, enter):
    """A campaign that was forgotten begins anew: everybody is free."""
    send(enter(), people(3))
    purge(store, old_campaigns(store, LATER), LATER)
    assert enter(2).holders([m.key for m in people(3)]) == {}


def test_other_campaigns_stay_as_they_are(store, enter, counts, clock):
    """Only what is old is found, the oldest first."""
    send(enter(campaign="second", clock=lambda: 1_500_000.0), people(3))
    send(enter(campaign="first"), people(4))
    send(enter(campaign="young", clock=lambda: LATER), people(5))
    found = old_campaigns(store, LATER)
    assert [old.name for old in found] == ["first", "second"]
    purge(store, found, LATER)
    assert counts()[:3] == (1, 1, 5)


@pytest.mark.parametrize("late", ["claim", "outcome", "decision"])
def test_any_activity_keeps_a_campaign(store, enter, clock, late):
    """A campaign is as old as the last thing that happened in it."""
    ledger = enter()
    request_id = claim(ledger, people(1))
    if late != "outcome":
        ledger.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    clock.now = LATER
    if late == "claim":
        claim(ledger, people(1, 10))
    elif late == "outcome":
        ledger.commit(outcomes=[Outcome(request_id, ACCEPTED)])
    else:
        resolve(store, request_id, ACCEPTED, "ann")
    assert old_campaigns(store, LATER) == []


def test_a_paused_campaign_is_kept(store, enter, counts):
    """A pause would be forgotten with its campaign, which would then go on; ended, it is forgotten with it."""
    enter()
    found = old_campaigns(store, LATER)
    pause(store, "c", "ann")
    assert [old.name for old in purge(store, found, LATER).in_use] == ["c"]
    later = store.clock() + 1
    paused = old_campaigns(store, later)
    assert kept_words(paused) == ["Kept: 1 campaign that somebody paused: c"]
    assert (purge(store, paused, later).campaigns, counts()[0]) == (0, 1)
    resume(store, "c", "ann")
    assert old_campaigns(store, LATER) == []
    later = store.clock() + 1
    purge(store, old_campaigns(store, later), later)
    assert counts()[0] == 0


def test_a_note_of_how_a_try_goes_is_activity(store, enter, counts):
    """Who has just found that all is sent counts on its being remembered; so does who waits, and has sent nothing."""
    send(enter(campaign="sent"), people(1))
    for campaign in ("sent", "waiting"):
        note_progress(store, campaign, register(store, claimant(2)), "waiting for credit")
    assert old_campaigns(store, LATER) == []
    later = store.clock() + 1
    found = old_campaigns(store, later, include_waiting=True)
    assert [old.name for old in found] == ["sent", "waiting"]
    purge(store, found, later)
    assert counts()[0] == 0


def test_the_notes_of_a_campaign_are_forgotten_with_it(store, counts):
    """A try is kept as long as the note of it; those of another campaign stay."""
    tried = [register(store, claimant(number), lambda: 1_000_000.0) for number in (1, 2)]
    for who, campaign in zip(tried, ("first", "second"), strict=True):
        note_progress(store, campaign, who, "ended")
    assert purge(store, [], LATER).attempts == 0
    later = store.clock() + 1
    first, _ = old_campaigns(store, later)
    assert (purge(store, [first], later).attempts, counts()) == (1, (1, 0, 0, 1, 0))
    with store.read() as connection:
        assert connection.execute(text("SELECT id FROM sms_attempt")).scalars().all() == tried[1:]


def test_a_campaign_whose_try_goes_on_is_kept(store, counts, monkeypatch):
    """What a try notes during the purge's question counts, also where it has sent nothing yet."""
    who = register(store, claimant())
    monkeypatch.setattr(store, "clock", lambda: LATER - 1)
    note_progress(store, "c", who, "failed")
    found = old_campaigns(store, LATER)
    monkeypatch.setattr(store, "clock", lambda: LATER)
    note_progress(store, "c", who, "sending")
    before = counts()
    assert [old.name for old in purge(store, found, LATER).in_use] == ["c"]
    assert counts() == before


@pytest.mark.parametrize("state", DEFERRED)
def test_a_campaign_of_which_an_attempt_waits_is_to_be_kept(store, enter, state):
    """Forgotten, it would be texted again by the attempt that goes on; a purge that includes such campaigns forgets it.

    A leg that goes on holds the campaign itself once it has noted anything.
    """
    waits = register(store, claimant())
    send(enter(claimant_id=waits), people(3))
    note_progress(store, "c", waits, state)
    later = store.clock() + 1
    assert [old.keep for old in old_campaigns(store, later)] == ["waiting"]
    register(store, claimant(0))
    assert [old.keep for old in old_campaigns(store, later)] == ["waiting"]
    goes_on = register(store, claimant())
    assert [old.keep for old in old_campaigns(store, later)] == ["waiting"]
    assert [old.keep for old in old_campaigns(store, later, include_waiting=True)] == [None]
    note_progress(store, "c", goes_on, "failed")
    assert [old.keep for old in old_campaigns(store, store.clock() + 1)] == [None]


@pytest.mark.parametrize("state", [UNKNOWN, None])
def test_a_campaign_with_an_open_request_is_to_be_kept(store, enter, counts, state):
    """What is unknown, or claimed and never recorded, is not forgotten, whatever its age."""
    ledger = enter()
    send(ledger, people(2))
    request_id = claim(ledger, people(1, 10))
    if state:
        ledger.commit(outcomes=[Outcome(request_id, state)])
    before, found = counts(), old_campaigns(store, LATER)
    assert [old.keep for old in found] == ["open"]
    assert (purge(store, found, LATER).campaigns, counts()) == (0, before)


@pytest.mark.parametrize("sent_again", [True, False])
def test_a_superseded_request_keeps_no_campaign_and_is_forgotten_with_its_record(store, enter, counts, sent_again):
    """Nobody has to decide about it any more."""
    ledger = enter()
    lost = send(ledger, people(3), UNKNOWN)
    ledger.supersede([lost])
    if sent_again:
        send(enter(2), people(3))
    (old,) = old_campaigns(store, LATER)
    assert (old.keep, counts()[4]) == (None, 3)
    purge(store, [old], LATER)
    assert (*counts()[:3], counts()[4]) == (0, 0, 0, 0)


@pytest.mark.parametrize("state", [ACCEPTED, NOT_SENT, None])
def test_a_campaign_that_is_used_again_is_kept(store, enter, counts, state):
    """What happens between the question and the answer counts: the rest of the campaign stays."""
    ledger = enter()
    send(ledger, people(2))
    (old,) = old_campaigns(store, LATER)
    again = enter(2)
    request_id = claim(again, people(1, 10))
    if state:
        again.commit(outcomes=[Outcome(request_id, state)])
    before = counts()
    in_use = purge(store, [old], LATER).in_use
    assert kept_words(in_use) == ["Kept: 1 campaign used again meanwhile: c"]
    assert counts() == before


def test_a_campaign_goes_in_portions(store, enter, counts, monkeypatch):
    """Each transaction forgets few requests, so that sends that run wait for none of them long."""
    monkeypatch.setattr(purging, "REQUESTS_AT_ONCE", 2)
    ledger = enter()
    for start in range(0, 50, 10):
        send(ledger, people(1, start))
    (old,) = old_campaigns(store, LATER)
    transactions = 0
    write = store.write

    def counting(lock, **how):
        nonlocal transactions
        transactions += 1
        return write(lock, **how)

    monkeypatch.setattr(store, "write", counting)
    messages = purge(store, [old], LATER).messages
    # The last two are those of attempts and balances.
    assert (messages, transactions, counts()[:3]) == (5, 4 + 2, (0, 0, 0))


def test_a_purge_that_was_broken_off_goes_on(store, enter, counts, monkeypatch):
    """What is forgotten by halves is old still: the next purge finds it and forgets the rest."""
    monkeypatch.setattr(purging, "REQUESTS_AT_ONCE", 1)
    ledger, messages = enter(), people(1)
    lost = send(ledger, messages, UNKNOWN)
    ledger.supersede([lost])
    send(enter(2), messages)
    ledger.commit(outcomes=[Outcome(lost, ACCEPTED)])
    send(ledger, people(2, 10))
    (old,) = old_campaigns(store, LATER)
    asked = iter([False, True, True])
    purge(store, [old], LATER, should_stop=lambda: next(asked))
    (rest,) = old_campaigns(store, LATER)
    assert (purge(store, [rest], LATER).messages, counts()[:3]) == (rest.messages, (0, 0, 0))


def test_a_campaign_that_another_purge_has_forgotten_is_gone(store, enter, counts):
    """Two purges at once do not harm a new campaign, though a database may give it the old one's number."""
    send(enter(), people(2))
    (old,) = old_campaigns(store, LATER)
    purge(store, [old], LATER)
    send(enter(campaign="new", clock=lambda: LATER), people(3))
    before = counts()
    assert (purge(store, [old], LATER).messages, counts()) == (0, before)


def test_a_send_that_runs_meanwhile_goes_on(open_store, enter, counts, monkeypatch):
    """A purge of one campaign and claims in another, at the same time, wait for each other and both succeed."""
    monkeypatch.setattr(purging, "REQUESTS_AT_ONCE", 1)
    ledger = enter()
    for start in range(0, 300, 10):
        send(ledger, people(1, start))
    sending = enter(campaign="running", into=open_store(), clock=lambda: LATER)
    other = open_store()
    (old,) = old_campaigns(other, LATER)
    forgotten = []
    thread = threading.Thread(target=lambda: forgotten.append(purge(other, [old], LATER).messages))
    thread.start()
    for start in range(0, 300, 10):
        send(sending, people(1, start))
    thread.join()
    assert (forgotten, counts()[:3]) == ([30], (1, 30, 30))


def test_tries_that_are_young_or_of_a_campaign_stay(store, enter, counts):
    """A try that has only begun has entered no campaign yet; one that has goes with its campaign."""
    enter(1)
    register(store, claimant(3), lambda: 1_000_000.0)
    register(store, claimant(4), lambda: LATER)
    assert purge(store, [], LATER).attempts == 1
    with store.read() as connection:
        left = connection.execute(text("SELECT try_number FROM sms_attempt ORDER BY try_number")).scalars().all()
    assert left == [1, 4]


def test_a_try_whose_campaign_was_forgotten_sends_nothing(store, enter):
    """Whoever entered a campaign before it was forgotten cannot claim in it any more: its claim is refused."""
    ledger = enter()
    purge(store, old_campaigns(store, LATER), LATER)
    with pytest.raises(LedgerError):
        claim(ledger, people(1))


def test_a_campaign_with_the_id_of_a_forgotten_one_is_another_one(store, enter):
    """A file gives the id to the next new campaign: whoever had entered the old one neither claims nor reads there."""
    ledger = enter()
    purge(store, old_campaigns(store, LATER), LATER)
    others = people(1)
    send(enter(campaign="new", clock=lambda: 1_000_001.0), others)
    held = {}
    with suppress(LedgerError):
        held = ledger.holders([m.key for m in others])
    assert held == {}
    with pytest.raises(LedgerError):
        claim(ledger, people(1, 10))
    assert enter(2, campaign="new").holders([m.key for m in people(1, 10)]) == {}


def test_a_purge_that_is_told_to_stop_ends_between_two_transactions(store, enter, counts, monkeypatch):
    """The transaction that runs is committed, no other one begins, and the next purge goes on from there."""
    monkeypatch.setattr(purging, "REQUESTS_AT_ONCE", 1)
    ledger = enter()
    for start in (0, 10, 20):
        send(ledger, people(1, start))
    (old,) = old_campaigns(store, LATER)
    asked = iter([False, True, True])
    stopped = purge(store, [old], LATER, should_stop=lambda: next(asked))
    assert (stopped.campaigns, stopped.messages, counts()[:3]) == (0, 1, (1, 2, 2))
    again = purge(store, [old], LATER)
    assert (again.campaigns, again.messages, counts()[:3]) == (1, 2, (0, 0, 0))


def test_numbers_are_overwritten_in_the_file(tmp_path, clock):
    """In a SQLite file, what is forgotten is not left for whoever reads its bytes."""
    store = open_sqlite(tmp_path / "own.db")
    send(CampaignLedger(store, "c", claimant(), clock=clock), people(1))
    written = int(people(1)[0].destination).to_bytes(6, "big")
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert written in (tmp_path / "own.db").read_bytes()
    purge(store, old_campaigns(store, LATER), LATER)
    store.close()
    assert [path.name for path in tmp_path.iterdir() if written in path.read_bytes()] == []
