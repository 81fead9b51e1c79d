from __future__ import annotations

from decimal import Decimal

from sqlalchemy import text

from airflow_provider_sms.ledger.balances import forget_balances, record_reading


def test_old_balances_are_forgotten(store, clock):
    """Those that were read before a moment; the others stay."""
    for read_at in (clock.now - 2, clock.now - 1, clock.now):
        record_reading(store, "a" * 32, Decimal(5), read_at - 10, read_at)
    assert forget_balances(store, clock.now) == 2
    with store.read() as connection:
        assert connection.execute(text("SELECT read_at FROM sms_balance")).scalars().all() == [clock.now]
