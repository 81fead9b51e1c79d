from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy import text
from support.sending import claim, claimant, close, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger import purge as purging
from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, DEFERRED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.purge import kept_words, old_campaigns, purge

TABLES = ("sms_campaign", "sms_request", "sms_message", "sms_attempt", "sms_superseded")
LATER = 2_000_000.0


def send(ledger, messages, state=ACCEPTED):
    request_id = claim(ledger, messages)
    close(ledger, request_id, state)
    return request_id


@pytest.fixture
def counts(rows):
    """Count the rows of each table."""
    return lambda: tuple(rows(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES)


def test_an_old_campaign_is_forgotten_wholly(store, enter, counts):
    """Messages, requests, decisions, the campaign itself, and the tries that only it referred to: it begins anew."""
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
    assert enter(2).holders([m.key for m in people(3)]) == {}


@pytest.mark.parametrize("late", ["claim", "outcome", "decision", "note"])
def test_any_activity_keeps_a_campaign(store, enter, clock, late):
    """A campaign is as old as the last thing that happened in it, such as an attempt's note that all is sent."""
    ledger = enter()
    request_id = claim(ledger, people(1))
    if late != "outcome":
        close(ledger, request_id, UNKNOWN)
    clock.now = LATER
    if late == "claim":
        claim(ledger, people(1, 10))
    elif late == "outcome":
        close(ledger, request_id)
    elif late == "note":
        note_progress(store, "c", register(store, claimant(2)), "ended")
    else:
        resolve(store, request_id, ACCEPTED, "ann")
    assert old_campaigns(store, LATER) == []


def test_a_paused_campaign_is_kept(store, enter, counts):
    """A pause would be forgotten with its campaign, which would then go on; ended, it is forgotten with it."""
    enter()
    found = old_campaigns(store, LATER)
    pause(store, "c", "ann")
    assert [old.name for old in purge(store, found, LATER).in_use] == ["c"]
    paused = old_campaigns(store, later := store.clock() + 1)
    assert kept_words(paused) == ["Kept: 1 campaign that somebody paused: c"]
    assert (purge(store, paused, later).campaigns, counts()[0]) == (0, 1)
    resume(store, "c", "ann")
    assert old_campaigns(store, LATER) == []
    purge(store, old_campaigns(store, later := store.clock() + 1), later)
    assert counts()[0] == 0


def test_attempts_are_forgotten_with_their_campaign(store, counts, rows):
    """One is kept as long as the campaign of its note; one that has only begun has entered no campaign yet."""
    tried = [register(store, claimant(number), lambda: 1_000_000.0) for number in (1, 2, 3)]
    tried.append(register(store, claimant(4), lambda: LATER))
    for who, campaign in zip(tried, ("first", "second"), strict=False):
        note_progress(store, campaign, who, "ended")
    assert purge(store, [], LATER).attempts == 1
    later = store.clock() + 1
    first, _ = old_campaigns(store, later)
    assert (purge(store, [first], later).attempts, counts()) == (2, (1, 0, 0, 1, 0))
    assert rows("SELECT id FROM sms_attempt") == [(tried[1],)]


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
        close(ledger, request_id, state)
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


@pytest.mark.parametrize("again", [ACCEPTED, NOT_SENT, None, "note"])
def test_a_campaign_that_is_used_again_is_kept(store, enter, counts, monkeypatch, again):
    """What happens between the question and the answer counts, also of an attempt that sends nothing yet."""
    monkeypatch.setattr(store, "clock", lambda: LATER)
    send(enter(), people(2))
    (old,) = old_campaigns(store, LATER)
    other = enter(2)
    if again == "note":
        note_progress(store, "c", other._claimant_id, "sending")
    else:
        request_id = claim(other, people(1, 10))
        if again:
            close(other, request_id, again)
    before = counts()
    in_use = purge(store, [old], LATER).in_use
    assert kept_words(in_use) == ["Kept: 1 campaign used again meanwhile: c"]
    assert counts() == before


def test_a_campaign_that_another_purge_has_forgotten_is_gone(store, enter, counts):
    """Two purges at once do not harm a new campaign, though a database may give it the old one's number."""
    send(enter(), people(2))
    (old,) = old_campaigns(store, LATER)
    purge(store, [old], LATER)
    send(enter(campaign="new", clock=lambda: LATER), people(3))
    before = counts()
    assert (purge(store, [old], LATER).messages, counts()) == (0, before)


@pytest.mark.parametrize("is_new", [False, True])
def test_an_attempt_whose_campaign_was_forgotten_sends_nothing(store, enter, is_new):
    """Its claim is refused, also where a file gives the campaign's id to the next new one, which is another one."""
    ledger = enter()
    purge(store, old_campaigns(store, LATER), LATER)
    others, held = people(1), {}
    if is_new:
        send(enter(campaign="new", clock=lambda: 1_000_001.0), others)
    with suppress(LedgerError):
        held = ledger.holders([m.key for m in others])
    assert held == {}
    with pytest.raises(LedgerError):
        claim(ledger, people(1, 10))
    assert enter(2, campaign="new").holders([m.key for m in people(1, 10)]) == {}


def test_a_purge_that_is_told_to_stop_ends_between_two_transactions(store, enter, counts, monkeypatch):
    """The transaction that runs is committed, no other one begins, and the next purge goes on from there.

    What a late response took back, and another request has too, is forgotten with either of them.
    """
    monkeypatch.setattr(purging, "REQUESTS_AT_ONCE", 1)
    ledger, messages = enter(), people(1)
    lost = send(ledger, messages, UNKNOWN)
    ledger.supersede([lost])
    send(enter(2), messages)
    close(ledger, lost)
    send(ledger, people(2, 10))
    (old,) = old_campaigns(store, LATER)
    asked = iter([False, True, True])
    stopped = purge(store, [old], LATER, should_stop=lambda: next(asked))
    assert (stopped.campaigns, counts()[:2]) == (0, (1, 2))
    (rest,) = old_campaigns(store, LATER)
    again = purge(store, [rest], LATER)
    assert (again.campaigns, again.messages, stopped.messages + again.messages) == (1, rest.messages, old.messages)
    assert counts()[:3] == (0, 0, 0)
