"""The balances of accounts as tasks read them: they tell what became of requests whose response was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert

from airflow_provider_sms.ledger.locks import BALANCE_LOCK
from airflow_provider_sms.ledger.schema import balance
from airflow_provider_sms.ledger.transitions import fitting_cost

if TYPE_CHECKING:
    from decimal import Decimal

    from airflow_provider_sms.ledger.backend import LedgerBackend


def record_reading(
    store: LedgerBackend, key: str, amount: Decimal | None, asked_at: float, read_at: float | None = None
) -> None:
    """Record a balance that the service was asked for.

    :param key: the account's key.
    :param amount: credits; None where the account is post-paid.
    :param asked_at: a moment before it was asked for, seconds since the epoch, by the ledger's clock.
    :param read_at: a moment after it was received. None means when it is recorded: machines that share a server take
        their time from it, late by as long as its last answer took, so that only a moment read in a transaction is
        never too early.
    :raises LedgerError: when it was not committed.
    """
    written = None if amount is None else fitting_cost(str(amount))
    with store.write(BALANCE_LOCK) as connection:
        read_at = store.clock() if read_at is None else read_at
        values = {"account": key, "asked_at": asked_at, "read_at": read_at, "amount": written}
        connection.execute(insert(balance).values(values))


def forget_balances(store: LedgerBackend, before: float) -> int:
    """Forget the balances that were read before a moment, and return how many.

    :param before: the moment, seconds since the epoch.
    :raises LedgerError: when it was not committed.
    """
    with store.write(BALANCE_LOCK) as connection:
        return connection.execute(delete(balance).where(balance.c.read_at < before)).rowcount
