from __future__ import annotations

import pytest
from support.sending import chunk_of, people
from support.told import pause_of

from airflow_provider_sms.exceptions import LedgerBusyError
from airflow_provider_sms.ledger.backend import campaign_lock
from airflow_provider_sms.ledger.campaigns import Pause, pause, resume
from airflow_provider_sms.ledger.postgres import open_postgres


def claim(ledger, messages, outcomes=()):
    return ledger.commit(outcomes=outcomes, chunks=[chunk_of(messages)], claim_seconds=60.0)


def test_nothing_of_a_paused_campaign_is_claimed_until_it_is_resumed(enter, store, rows):
    """A pause holds for every try of this campaign, which learns who paused and when; nothing is lost by it."""
    ledger, other, another = enter(1), enter(2), enter(campaign="other")
    assert pause(store, "c", "ann") is None
    made = pause_of(store, "c")
    assert pause(store, "c", "bob") == made == pause_of(store, "c"), "a pause that holds stays"
    assert (claim(ledger, people(3)), claim(other, people(2, 10))) == ([], [])
    assert (ledger.paused, other.paused, made.paused_by) == (made, made, "ann")
    assert (rows("SELECT id FROM sms_request"), rows("SELECT * FROM sms_message")) == ([], [])
    assert len(claim(another, people(3))) == 1
    assert resume(store, "c", "bob") == made
    (claimed,) = claim(ledger, people(3))
    assert (list(claimed.won), ledger.paused, pause_of(store, "c")) == ([0, 1, 2], None, None)


def test_the_last_pause_is_kept(enter, store, rows):
    """Who paused and who resumed; to resume what is not paused is no error, and leaves no trace."""
    enter()
    for paused_by, resumed_by in [("ann", "bob"), ("cid", "dan")]:
        pause(store, "c", paused_by)
        resume(store, "c", resumed_by)
        assert (pause_of(store, "c"), resume(store, "c", "fay")) == (None, None)
        assert rows("SELECT paused_by, resumed_by FROM sms_campaign") == [(paused_by, resumed_by)]
    pause(store, "c", "eve")
    assert pause_of(store, "c").paused_by == "eve"


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
