from __future__ import annotations

import pytest
from support.keys import request_of
from support.planning import checked
from support.sending import people

from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.reporting.row_counts import COUNTS, count_rows, counts_of_check


@pytest.fixture
def table():
    """Check ten messages, a duplicate and an invalid row, as an attempt does, once others have claimed."""

    def table(ledger=None, *, resends=False):
        rows = [{"destination": each.destination, "text": "Hi"} for each in people(10)]
        return checked([*rows, rows[0], {"destination": None, "text": "Hi"}], campaign=ledger, resends=resends)

    return table


@pytest.fixture
def hold(table):
    """Claim some of the messages, and record the outcome."""
    spool = table().spool
    keys = [key for rows in spool.batches() for key in rows.columns.column("key").to_pylist()]

    def hold(ledger, first, last, state=ACCEPTED):
        chunk = request_of(keys[first:last], [None] * (last - first))
        (claim,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
        if state is not None:
            ledger.commit(outcomes=[Outcome(claim.request_id, state)])
        return claim.request_id

    return hold


def counts(found):
    return {name: getattr(found, name) for name in COUNTS if getattr(found, name)}


def test_each_row_is_counted_by_who_holds_it_in_the_end(enter, table, hold):
    """Whatever was done to whichever request since the check; a claim without an outcome is unknown."""
    ledger, other = enter(1), enter(2)
    seen = table(ledger)
    hold(ledger, 0, 4)
    mine = hold(ledger, 4, 5, UNKNOWN)
    hold(other, 5, 7)
    theirs = hold(other, 7, 8, None)
    hold(ledger, 8, 9, NOT_SENT)
    found = count_rows(seen.spool, seen.counts, ledger)
    expected = {"accepted": 4, "unknown": 2, "not_sent": 2, "invalid": 1, "duplicate": 1, "already_sent": 2}
    assert (counts(found), found.rows) == (expected, 12)
    assert (found.unsettled, found.awaited) == ({mine: 1, theirs: 1}, {theirs})


def test_what_was_unknown_when_it_was_checked_is_counted_by_its_holder(enter, table, hold):
    """Its outcome may have come since; what was given back by then is not sent."""
    ledger, other = enter(1), enter(2)
    both = hold(other, 0, 3, None), hold(other, 3, 5, None)
    seen = table(ledger)
    assert seen.counts[Status.UNKNOWN] == 5
    hold(ledger, 5, 10)
    other.commit(outcomes=[Outcome(both[0], ACCEPTED), Outcome(both[1], NOT_SENT)])
    found = count_rows(seen.spool, seen.counts, ledger)
    assert counts(found) == {"accepted": 5, "already_sent": 3, "not_sent": 2, "invalid": 1, "duplicate": 1}


def test_a_free_row_that_a_superseded_request_had_is_unknown(enter, table, hold):
    """It was to be sent when it was checked, and may have been sent before; without a request, nobody can settle it."""
    ledger = enter()
    lost = hold(ledger, 0, 3, UNKNOWN)
    seen = table(ledger, resends=True)
    ledger.supersede([lost])
    hold(ledger, 2, 9)
    found = count_rows(seen.spool, seen.counts, ledger)
    assert counts(found) == {"accepted": 7, "unknown": 2, "not_sent": 1, "invalid": 1, "duplicate": 1}
    assert found.unsettled == {}


def test_a_send_in_which_all_went_well_is_counted_without_its_rows(enter, table, hold, monkeypatch):
    """One count of the messages that this process holds: a second walk takes as long as the check did."""
    hold(enter(), 0, 4)
    ledger = enter()
    seen = table(ledger)
    hold(ledger, 4, 10)
    monkeypatch.setattr(seen.spool, "batches", None)
    found = count_rows(seen.spool, seen.counts, ledger)
    assert counts(found) == {"accepted": 10, "invalid": 1, "duplicate": 1}


def test_without_the_ledger_no_row_is_called_unsent(table):
    """What may have been posted is unknown; before anything was, it is not sent."""
    found = table().counts
    known = {"invalid": 1, "duplicate": 1}
    assert counts(counts_of_check(found)) == {"not_sent": 10, **known}
    assert counts(counts_of_check(found).in_doubt()) == {"unknown": 10, **known}
