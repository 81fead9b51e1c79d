"""The balances of accounts over time, as tasks read them, for queries; and how all balances are forgotten."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from airflow_provider_sms.ledger.locks import BALANCE_LOCK
from airflow_provider_sms.ledger.progress import PATIENCE_SECONDS
from airflow_provider_sms.ledger.schema import balance, balance_reading

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

FRESH_SECONDS = 3600.0
"""Seconds for which an unchanged balance is not recorded again."""

_TABLES = ((balance, balance.c.observed_at), (balance_reading, balance_reading.c.read_at))
_MAX_CONN_ID = 250
_MAX_AMOUNT = 40


def record_balance(store: LedgerBackend, conn_id: str, amount: Decimal | None) -> bool:
    """Record a balance that was just read, unless the last hour has the same one.

    :param conn_id: the connection of the account.
    :param amount: credits; None means that the account is post-paid.
    :returns: whether it was recorded.
    :raises LedgerError: when it was not committed.
    """
    conn_id, now = conn_id[:_MAX_CONN_ID], store.clock()
    with store.read() as connection:
        if _is_known(connection, conn_id, amount, now):
            return False
    with store.write(BALANCE_LOCK, patience=PATIENCE_SECONDS) as connection:
        # Another process may have recorded the same meanwhile.
        if _is_known(connection, conn_id, amount, now):
            return False
        connection.execute(insert(balance).values(conn_id=conn_id, observed_at=now, amount=_written(amount)))
        return True


def count_balances(store: LedgerBackend, before: float) -> int:
    """Count the balances that were read before a moment, including those that tell of unknown requests.

    :param before: the moment, seconds since the epoch.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        return sum(
            connection.execute(select(func.count()).select_from(table).where(read_at < before)).scalar_one()
            for table, read_at in _TABLES
        )


def forget_balances(store: LedgerBackend, before: float) -> int:
    """Forget the balances that were read before a moment, including those that tell of unknown requests.

    :param before: the moment, seconds since the epoch.
    :returns: how many.
    :raises LedgerError: when it was not committed.
    """
    with store.write(BALANCE_LOCK) as connection:
        return sum(connection.execute(delete(table).where(read_at < before)).rowcount for table, read_at in _TABLES)


def _is_known(connection: Connection, conn_id: str, amount: Decimal | None, now: float) -> bool:
    query = (
        select(balance.c.amount, balance.c.observed_at)
        .where(balance.c.conn_id == conn_id)
        .order_by(balance.c.observed_at.desc(), balance.c.id.desc())
        .limit(1)
    )
    last = connection.execute(query).first()
    if last is None or last.observed_at < now - FRESH_SECONDS:
        return False
    seen = _written(amount)
    if last.amount is None or seen is None:
        return last.amount is seen
    return Decimal(last.amount) == Decimal(seen)


def _written(amount: Decimal | None) -> str | None:
    """Return an amount as the ledger stores it; the service may state any number of digits."""
    if amount is None:
        return None
    written = f"{amount:f}"
    return written if len(written) <= _MAX_AMOUNT else f"{amount:.6f}"
