from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import text

from airflow_provider_sms.ledger.account_history import record_reading
from airflow_provider_sms.ledger.balances import count_balances, forget_balances, record_balance

HOUR = 3600.0


@pytest.fixture
def seen(store):
    """Give what was recorded, in order."""

    def seen():
        query = "SELECT conn_id, amount, observed_at FROM sms_balance ORDER BY id"
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return seen


@pytest.fixture
def record(store, clock):
    """Record a balance at a moment that the test sets."""
    store.clock = clock
    return lambda amount, conn_id="mine": record_balance(store, conn_id, None if amount is None else Decimal(amount))


def test_a_balance_is_recorded_when_it_changes(record, seen, clock):
    """What is as it was within the hour is not written again."""
    assert [record(each) for each in ("10", "10", "10.00", "9.5", "10")] == [True, False, False, True, True]
    assert seen() == [("mine", "10", clock.now), ("mine", "9.5", clock.now), ("mine", "10", clock.now)]


def test_a_balance_that_stays_is_recorded_each_hour(record, seen, clock):
    """So that a chart can tell what was seen from what was not looked at."""
    for later in (0, HOUR, HOUR + 1, HOUR + 2):
        clock.now = 1_000_000.0 + later
        record("10")
    assert [at for *_, at in seen()] == [1_000_000.0, 1_000_000.0 + HOUR + 1]


def test_a_post_paid_account_has_no_amount(record, seen):
    """It differs from each one that has."""
    assert [record(each) for each in (None, None, "0", None)] == [True, False, True, True]
    assert [amount for _, amount, _ in seen()] == [None, "0", None]


def test_connections_have_balances_of_their_own(record, seen):
    """The last one of the same connection is what counts."""
    assert [record("1", "a"), record("2", "b"), record("1", "a"), record("2", "b")] == [True, True, False, False]
    assert [conn_id for conn_id, *_ in seen()] == ["a", "b"]


def test_an_amount_of_any_length_finds_room(record, seen):
    """The service may give any number of digits; those that are kept are enough to see whether it has changed."""
    amount = "9223372036854775806.1234567890123456789012345678901234567890"
    assert [record(amount), record(amount), record("1E+3")] == [True, False, True]
    assert [written for _, written, _ in seen()] == ["9223372036854775806.123457", "1000"]


def test_old_balances_are_forgotten(store, record, seen, clock):
    """Those from before a moment, of all connections; the others stay."""
    record("1", "a")
    record("2", "b")
    clock.now += HOUR
    record("3", "a")
    assert count_balances(store, clock.now) == 2
    assert forget_balances(store, clock.now) == 2
    assert (count_balances(store, clock.now), [amount for _, amount, _ in seen()]) == (0, ["3"])


def test_old_readings_are_forgotten_with_the_balances(store, clock):
    """They are as old when they were read; the others stay."""
    for read_at in (clock.now - 2, clock.now - 1, clock.now):
        record_reading(store, "a" * 32, Decimal(5), read_at - 10, read_at)
    assert count_balances(store, clock.now) == 2
    assert forget_balances(store, clock.now) == 2
    with store.read() as connection:
        assert connection.execute(text("SELECT read_at FROM sms_balance_reading")).scalars().all() == [clock.now]
