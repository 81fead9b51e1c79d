from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from support.keys import request_of
from support.sending import people
from support.told import pause_of

from airflow_provider_sms.exceptions import InputError, LedgerBusyError
from airflow_provider_sms.ledger.backend import campaign_lock
from airflow_provider_sms.ledger.campaigns import Pause, pause, resume
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres


def chunk(messages):
    return request_of([m.key for m in messages], [m.destination for m in messages])


def claim(ledger, messages, outcomes=()):
    return ledger.commit(outcomes=outcomes, chunks=[chunk(messages)], claim_seconds=60.0)


@pytest.fixture
def count(store):
    """Count the rows of a table."""

    def count(table):
        with store.read() as connection:
            return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()

    return count


def test_nothing_of_a_paused_campaign_is_claimed(enter, store, count):
    """A pause that another process made holds for every try, which learns who paused and when."""
    ledger, other = enter(1), enter(2)
    assert pause(store, "c", "ann") is None
    made = pause_of(store, "c")
    assert (claim(ledger, people(3)), claim(other, people(2, 10))) == ([], [])
    assert (ledger.paused, other.paused, pause_of(store, "c")) == (made, made, made)
    assert (made.paused_by, count("sms_request"), count("sms_message")) == ("ann", 0, 0)


def test_outcomes_of_a_paused_campaign_are_recorded(enter, store):
    """What was under way when the campaign was paused ends as ever."""
    ledger = enter()
    done, lost, unsent = [claim(ledger, people(1, n))[0].request_id for n in range(3)]
    pause(store, "c", "ann")
    outcomes = [Outcome(done, ACCEPTED), Outcome(lost, UNKNOWN), Outcome(unsent, NOT_SENT)]
    assert claim(ledger, people(1, 10), outcomes) == []
    states = {key: holder.state for key, holder in ledger.holders([m.key for m in people(3)]).items()}
    assert states == {people(1)[0].key: ACCEPTED, people(1, 1)[0].key: UNKNOWN}


def test_a_campaign_that_is_resumed_goes_on(enter, store):
    """Nothing is lost by a pause: what was not claimed then is claimed now."""
    ledger = enter()
    assert pause(store, "c", "ann") is None
    made = pause_of(store, "c")
    claim(ledger, people(3))
    assert resume(store, "c", "bob") == made
    (claimed,) = claim(ledger, people(3))
    assert (list(claimed.won), ledger.paused, pause_of(store, "c")) == ([0, 1, 2], None, None)


def test_other_campaigns_are_not_paused(enter, store):
    """A pause is of one campaign."""
    other = enter(campaign="other")
    enter()
    pause(store, "c", "ann")
    assert len(claim(other, people(3))) == 1


def test_a_pause_that_holds_stays(enter, store):
    """Who pauses again learns who paused first."""
    enter()
    first, second = pause(store, "c", "ann"), pause(store, "c", "bob")
    assert (first, second) == (None, pause_of(store, "c"))


def test_to_resume_what_is_not_paused_says_so(enter, store):
    """It is no error, and leaves no trace."""
    enter()
    assert resume(store, "c", "ann") is None
    with store.read() as connection:
        assert connection.execute(text("SELECT resumed_by FROM sms_campaign")).scalars().all() == [None]


def test_the_last_pause_is_kept(enter, store):
    """Who paused and who resumed; a pause that ended does not hold the next claim."""
    enter()
    for paused_by, resumed_by in [("ann", "bob"), ("cid", "dan")]:
        pause(store, "c", paused_by)
        resume(store, "c", resumed_by)
        assert pause_of(store, "c") is None
        with store.read() as connection:
            row = connection.execute(text("SELECT paused_by, resumed_by FROM sms_campaign")).one()
        assert tuple(row) == (paused_by, resumed_by)
    pause(store, "c", "eve")
    assert pause_of(store, "c").paused_by == "eve"


@pytest.mark.parametrize("asked", [lambda store: pause(store, "x", "ann"), lambda store: resume(store, "x", "ann")])
def test_a_campaign_that_is_not_there_is_refused(enter, store, count, asked):
    """A name with a typing error pauses nothing, and says so."""
    enter()
    with pytest.raises(InputError, match="no campaign 'x'"):
        asked(store)
    assert count("sms_campaign") == 1


def test_to_ask_for_a_pause_needs_a_campaign(store):
    """There is no answer for a campaign that the ledger does not have."""
    with pytest.raises(InputError, match="no campaign 'x'"):
        pause_of(store, "x")


def test_a_pause_that_came_while_a_claim_waited_is_seen(enter, open_store, monkeypatch):
    """A claim looks for a pause within its own transaction, and not before that begins."""
    theirs = open_store()
    ledger = enter(into=theirs)
    write = theirs.write

    def write_after_a_pause(lock, **how):
        pause(open_store(), "c", "ann")
        return write(lock, **how)

    monkeypatch.setattr(theirs, "write", write_after_a_pause)
    assert claim(ledger, people(3)) == []
    assert isinstance(ledger.paused, Pause)


def test_a_pause_waits_for_a_claim_that_is_under_way(postgres_url):
    """Or the claim, which has looked already, would be committed after the pause."""
    claiming, pausing = open_postgres(postgres_url), open_postgres(postgres_url, busy_seconds=0.1)
    with claiming.write(campaign_lock("c")), pytest.raises(LedgerBusyError):
        pause(pausing, "c", "ann")
    claiming.close()
    pausing.close()


def test_no_claim_follows_a_pause(enter, open_store, count):
    """Several processes claim as fast as they can: once a pause has returned, the ledger gets no further request."""
    senders = [enter(number, into=open_store(), pid=number) for number in range(3)]
    told = [threading.Event() for _ in senders]
    after = [threading.Event() for _ in senders]
    ended = threading.Event()

    def send(number):
        ledger, place = senders[number], number * 1_000_000
        while not ended.is_set():
            was_told = told[number].is_set()
            claim(ledger, people(2, place))
            place += 2
            if was_told:
                after[number].set()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(senders))]
    for thread in threads:
        thread.start()
    pause(open_store(), "c", "ann")
    requests = count("sms_request")
    for event in told:
        event.set()
    try:
        # Each of them has begun and ended a claim since.
        assert [event.wait(60.0) for event in after] == [True, True, True]
    finally:
        ended.set()
        for thread in threads:
            thread.join(60.0)
    assert count("sms_request") == requests
