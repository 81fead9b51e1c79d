"""The balance of each connection over time, and how long it lasts."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from airflow_provider_sms.ledger.schema import balance, claimant, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader

DAY = 86_400.0
"""Seconds of a day."""
SETTLING_SECONDS = 120.0
"""Within this many seconds, only the lowest balance counts: tasks that send together may record balances in a different
order from the one in which the service stated them."""
RECENT_ATTEMPTS = 10_000
"""Attempts whose connections are looked at: without a bound, a large ledger would slow each refresh of the page."""
RATE_DAYS = 7
"""Days over which spending is averaged: a whole week, since the days of a week differ."""


class BalanceReading(NamedTuple):
    """A balance that a task read.

    :param at: seconds since the epoch.
    :param amount: credits; None means that the account is post-paid.
    """

    at: float
    amount: Decimal | None


class AccountBalance(NamedTuple):
    """The balance of a connection over time.

    :param readings: oldest first, at least one.
    :param spent_per_day: credits, averaged over the last days; None means not known.
    :param days_left: days that the balance lasts at this rate; None means that nothing is spent, or not known.
    """

    conn_id: str
    readings: Sequence[BalanceReading]
    spent_per_day: Decimal | None
    days_left: float | None


def account_balances(
    ledger: LedgerReader,
    *,
    may_see: Callable[[str], bool],
    sees_everything: bool,
    days: float = 30,
    points: int = 300,
) -> list[AccountBalance]:
    """Return the balances of connections, by their names.

    :param may_see: returns whether the reader may see a DAG.
    :param sees_everything: whether the reader may see every DAG: everybody else sees the connections with which a
        visible DAG texts, as the last :data:`RECENT_ATTEMPTS` attempts reported.
    :param days: how far back.
    :param points: the most readings of each connection; see :func:`downsample`.
    :raises SmsError: the ledger cannot be read.
    """
    recent = select(progress.c.conn_id, claimant.c.dag_id).select_from(progress.join(claimant))
    recent = recent.order_by(progress.c.claimant_id.desc()).limit(RECENT_ATTEMPTS)
    with ledger.read() as connection:
        now = ledger.clock()
        since = now - days * DAY
        query = select(balance.c.conn_id, balance.c.observed_at, balance.c.amount).where(balance.c.observed_at >= since)
        if not sees_everything:
            # The DAGs of a connection are unknown where no task has reported that it texts with it.
            used = {tuple(row) for row in connection.execute(recent) if row.conn_id is not None}
            query = query.where(balance.c.conn_id.in_({conn_id for conn_id, dag_id in sorted(used) if may_see(dag_id)}))
        readings: dict[str, list[BalanceReading]] = {}
        for conn_id, at, amount in connection.execute(query.order_by(balance.c.observed_at, balance.c.id)):
            reading = BalanceReading(at, None if amount is None else Decimal(amount))
            readings.setdefault(conn_id, []).append(reading)
    return [
        _account(conn_id, of_connection, now, since=since, points=points)
        for conn_id, of_connection in sorted(readings.items())
    ]


def _account(
    conn_id: str, readings: Sequence[BalanceReading], now: float, *, since: float, points: int
) -> AccountBalance:
    spent = spent_per_day(readings, now)
    left = readings[-1].amount
    days_left = float(left / spent) if spent and left is not None else None
    return AccountBalance(conn_id, downsample(readings, since, now, points), spent, days_left)


def spent_per_day(readings: Sequence[BalanceReading], now: float, *, days: float = RATE_DAYS) -> Decimal | None:
    """Return the credits spent a day: all that the balance fell by, without setting off credits bought in between.

    :param readings: oldest first.
    :returns: None if there are fewer than two balances, or the account is post-paid.
    """
    recent = [each for each in readings if each.at >= now - days * DAY and each.amount is not None]
    if len(recent) <= 1:
        return None
    lowest: dict[int, Decimal] = {}
    for each in recent:
        amount = each.amount or Decimal(0)
        slot = int(each.at // SETTLING_SECONDS)
        lowest[slot] = min(lowest.get(slot, amount), amount)
    amounts = [lowest[slot] for slot in sorted(lowest)]
    fell = sum((max(before - after, Decimal(0)) for before, after in pairwise(amounts)), Decimal(0))
    # At least one day: the first hour of a campaign says little about a day.
    elapsed = max(now - recent[0].at, DAY)
    return fell * Decimal(str(DAY)) / Decimal(str(elapsed))


def downsample(readings: Sequence[BalanceReading], since: float, until: float, points: int) -> list[BalanceReading]:
    """Return the last reading of each of ``points`` equal intervals, so that a chart has no more points than room."""
    width = max(until - since, 1.0) / points
    last = {int((each.at - since) / width): each for each in readings}
    return [last[interval] for interval in sorted(last)]
