from __future__ import annotations

import pytest
from sqlalchemy import select, true

from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Chunk
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.ledger.transitions import (
    LAPSED,
    current_state,
    lapse,
    may_be_recorded,
    reason_at,
    repeated_events,
    state_at,
    under_way,
)

DEADLINE = 1_000.0


@pytest.fixture
def held(enter, store):
    """Insert a request in a state, claimed 100 seconds before its deadline."""

    def held(state):
        clock = lambda: DEADLINE - 100.0  # noqa: E731
        (claim,) = enter(clock=clock).commit(chunks=[Chunk([b"k" * 16], ["27820000000"])], claim_seconds=100.0)
        with store.write(1) as connection:
            connection.execute(request.update().values(state=state))
        return claim.request_id

    return held


@pytest.mark.parametrize(
    ("state", "late", "expected"),
    [
        (CLAIMED, -1.0, CLAIMED),
        (CLAIMED, 0.0, CLAIMED),
        (CLAIMED, 0.5, UNKNOWN),
        (UNKNOWN, -1.0, UNKNOWN),
        (ACCEPTED, 0.5, ACCEPTED),
        (NOT_SENT, 0.5, NOT_SENT),
    ],
)
def test_a_claim_lapses_once_its_deadline_has_passed(store, held, state, late, expected):
    """Read as a value, in an expression or written down, it is the same rule; no other state changes."""
    held(state)
    now = DEADLINE + late
    assert current_state(state, DEADLINE, now) == expected
    why = LAPSED if state != expected else None
    with store.write(1) as connection:
        read = select(state_at(now), reason_at(now), under_way(now))
        assert [tuple(row) for row in connection.execute(read)] == [(expected, why, expected == CLAIMED)]
        lapse(connection, true(), now)
        written = select(request.c.state, request.c.reason)
        assert [tuple(row) for row in connection.execute(written)] == [(expected, why)]


@pytest.mark.parametrize(
    ("finished_at", "length", "after", "expected"),
    [
        (None, 45.0, 0.0, True),
        (None, 45.0, 120.0, True),
        (None, 45.0, 120.5, False),
        (None, 150.0, 150.0, True),
        (None, 150.0, 150.5, False),
        (1_001.0, 45.0, 50.0, False),
    ],
)
def test_an_outcome_may_be_recorded_for_a_while_past_the_deadline(finished_at, length, after, expected):
    """Until so many seconds after the claim, at least until its deadline, and only where none is recorded."""
    claimed_at = 1_000.0
    found = may_be_recorded(finished_at, claimed_at, claimed_at + length, now=claimed_at + after, seconds=120.0)
    assert found is expected


def test_an_event_id_belongs_to_the_first_request_that_has_it():
    """Of several responses with one event id, all but the first are repeated; no event id is no repeat."""
    assert repeated_events({1: 5, 2: None, 3: 5, 4: None, 5: 6, 6: 5}) == {3, 6}
