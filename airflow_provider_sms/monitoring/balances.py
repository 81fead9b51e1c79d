"""The balance of each connection over time, and how long it lasts."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from airflow_provider_sms.ledger.schema import balance, claimant, progress

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from airflow_provider_sms.ledger.reader import LedgerReader

DAY = 86_400.0
MOMENT_SECONDS = 120.0
"""Of what was seen within so long, the least counts."""
RATE_DAYS = 7
"""Days that the present rate is taken from."""


class Seen(NamedTuple):
    """A balance that a task saw.

    :param at: seconds since the epoch.
    :param amount: credits; None: the account is post-paid.
    """

    at: float
    amount: Decimal | None


class Account(NamedTuple):
    """The balance of a connection over time.

    :param seen: oldest first, at least one.
    :param spent_a_day: credits, of the last days; None where they tell nothing.
    :param days: that the balance lasts at this rate; None where nothing is spent, or nothing tells.
    """

    conn_id: str
    seen: Sequence[Seen]
    spent_a_day: Decimal | None
    days: float | None


def accounts(ledger: LedgerReader, *, hidden: Collection[str], days: float = 30, points: int = 300) -> list[Account]:
    """Give the balances of connections, by their names.

    :param hidden: DAGs that the reader may not see: a connection that no other one texts by is left out.
    :param days: how far back.
    :param points: of each, how many at most: the last one of each stretch of time.
    :raises SmsError: the ledger cannot be read.
    """
    users = select(progress.c.conn_id, claimant.c.dag_id).select_from(progress.join(claimant)).distinct()
    with ledger.read() as connection:
        now = ledger.clock()
        since = now - days * DAY
        texting: dict[str, set[str]] = {}
        for conn_id, dag_id in connection.execute(users):
            texting.setdefault(conn_id, set()).add(dag_id)
        query = select(balance.c.conn_id, balance.c.observed_at, balance.c.amount).where(balance.c.observed_at >= since)
        by_conn: dict[str, list[Seen]] = {}
        for conn_id, at, amount in connection.execute(query.order_by(balance.c.observed_at, balance.c.id)):
            seen = Seen(at, None if amount is None else Decimal(amount))
            by_conn.setdefault(conn_id, []).append(seen)
    return [
        account(conn_id, seen, now, since=since, points=points)
        for conn_id, seen in sorted(by_conn.items())
        # Of one that no task has told to text by, nobody knows whose it is.
        if not hidden or texting.get(conn_id, set()) - set(hidden)
    ]


def account(conn_id: str, seen: Sequence[Seen], now: float, *, since: float, points: int) -> Account:
    """Say how long a balance lasts, and thin out what was seen of it.

    :param seen: oldest first, at least one.
    """
    rate = spent_a_day(seen, now)
    left = seen[-1].amount
    lasts = float(left / rate) if rate and left is not None else None
    return Account(conn_id, thinned(seen, since, now, points), rate, lasts)


def spent_a_day(seen: Sequence[Seen], now: float, *, days: float = RATE_DAYS) -> Decimal | None:
    """Give the credits that are spent a day: what the balance fell by in all, whatever was bought between.

    :param seen: oldest first.
    :returns: None where fewer than two balances tell, or the account is post-paid.
    """
    recent = [each for each in seen if each.at >= now - days * DAY and each.amount is not None]
    if len(recent) <= 1:
        return None
    # What tasks that send at the same time were told may be written in another order.
    moments: dict[int, Decimal] = {}
    for each in recent:
        moment = int(each.at // MOMENT_SECONDS)
        moments[moment] = min(moments.get(moment, each.amount or Decimal(0)), each.amount or Decimal(0))
    amounts = [moments[moment] for moment in sorted(moments)]
    fell = sum((max(before - after, Decimal(0)) for before, after in pairwise(amounts)), Decimal(0))
    # A first hour says little of a day, and one day of no spending is a day of it.
    passed = max(now - recent[0].at, DAY)
    return fell * Decimal(str(DAY)) / Decimal(str(passed))


def thinned(seen: Sequence[Seen], since: float, until: float, points: int) -> list[Seen]:
    """Give the last balance of each stretch of time.

    :param points: stretches.
    """
    width = max(until - since, 1.0) / points
    last = {int((each.at - since) / width): each for each in seen}
    return [last[place] for place in sorted(last)]
