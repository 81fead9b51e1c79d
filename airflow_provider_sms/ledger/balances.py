"""The balances of accounts as tasks read them, the requests that moved them, and what the balances tell of these."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, insert, select, update

from airflow_provider_sms.ledger.account import BilledRequest, Reading
from airflow_provider_sms.ledger.backend import LEDGER_LOCK, campaign_lock, in_pieces
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import balance, request
from airflow_provider_sms.ledger.transitions import fitting_cost, lapse, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection, Row

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend

AN_HOUR = 3600.0
"""Seconds: no request is open for longer, and nothing that happened earlier or later casts doubt on a request."""
READINGS_BEFORE = 20
"""Readings of more than an hour before a request that are looked at: one of them was quiet, or nothing tells."""
READINGS_AFTER = 200


def record_reading(
    store: LedgerBackend, key: str, amount: Decimal | None, asked_at: float, read_at: float | None = None
) -> None:
    """Record a balance in credits, or None of a post-paid account, and a moment before the service was asked for it.

    :param read_at: a moment after it was received. None means when it is recorded: machines that share a server take
        their time from it, late by as long as its last answer took, so that only a moment read in a transaction is
        never too early.
    """
    written = None if amount is None else fitting_cost(str(amount))

    def write(connection: Connection) -> None:
        until = store.clock() if read_at is None else read_at
        values = {"account": key, "asked_at": asked_at, "read_at": until, "amount": written}
        connection.execute(insert(balance).values(values))

    store.save(LEDGER_LOCK, write, shared=True)


def still_unknown(store: LedgerBackend, request_ids: Collection[int]) -> set[int]:
    """Return those of the requests that have no outcome by now."""
    return {each.id for each in _among(store, request_ids)}


def lost_lately(store: LedgerBackend, key: str, since: float) -> set[int]:
    """Return the unknown requests of an account that were settled after a moment, or are not settled yet."""
    recent = and_(request.c.account == key, request.c.claimed_at > since - AN_HOUR, request.c.deadline > since)
    query = select(request.c.id)
    return store.fetch(
        lambda connection: set(connection.scalars(query.where(recent, state_at(store.clock()) == UNKNOWN)))
    )


def read_histories(
    store: LedgerBackend, key: str, request_ids: Collection[int]
) -> Iterator[tuple[Sequence[Reading], Sequence[BilledRequest]]]:
    """Return the readings and requests of an account around its unknown requests, together where they are near."""
    near: list[list[Row[Any]]] = []
    for row in sorted(_among(store, request_ids, request.c.account == key), key=lambda each: each.claimed_at):
        if not near or row.claimed_at > near[-1][-1].deadline + AN_HOUR:
            near.append([])
        near[-1].append(row)
    for asked in near:
        yield store.fetch(partial(_history, key=key, asked=asked))


def _among(store: LedgerBackend, request_ids: Collection[int], *conditions: Any) -> list[Row[Any]]:
    """Return those of the requests that are unknown by now."""

    def read(connection: Connection) -> list[Row[Any]]:
        columns = (request.c.id, request.c.account, request.c.claimed_at, request.c.deadline)
        query = select(*columns).where(state_at(store.clock()) == UNKNOWN, *conditions)
        pieces = (query.where(request.c.id.in_(piece)) for piece in in_pieces(sorted(request_ids)))
        return list(chain.from_iterable(map(connection.execute, pieces)))

    return store.fetch(read)


def _history(
    connection: Connection, key: str, asked: Sequence[Row[Any]]
) -> tuple[Sequence[Reading], Sequence[BilledRequest]]:
    begin, end = asked[0].claimed_at, max(each.deadline for each in asked)
    of_account = (balance.c.account == key, balance.c.amount.is_not(None))
    query = select(balance.c.asked_at, balance.c.read_at, balance.c.amount)
    earlier = query.where(*of_account, balance.c.read_at < begin - AN_HOUR).order_by(balance.c.read_at.desc())
    around = query.where(*of_account, balance.c.read_at >= begin - AN_HOUR, balance.c.read_at <= end)
    later = query.where(*of_account, balance.c.read_at > end).order_by(balance.c.read_at)
    rows = [*connection.execute(earlier.limit(READINGS_BEFORE)), *connection.execute(around)]
    rows += connection.execute(later.limit(READINGS_AFTER))
    readings = [Reading(asked_at, read_at, Decimal(amount)) for asked_at, read_at, amount in rows]
    since = min([begin, *(each.asked_at for each in readings)]) - AN_HOUR
    until = max([end, *(each.read_at for each in readings)])
    columns = [request.c[name] for name in _COLUMNS]
    its = and_(request.c.account == key, request.c.claimed_at >= since, request.c.claimed_at <= until)
    billed: list[Row[Any]] = list(connection.execute(select(*columns).where(its)))
    # What all of a request has cost shows how far the prices are off that were expected.
    ratios = [Decimal(each.cost) / Decimal(each.planned_cost) for each in billed if _tells_prices(each)]
    bounds = min([Decimal(1), *ratios]), max([Decimal(1), *ratios])
    return readings, [_billed(each, *bounds) for each in billed]


_COLUMNS = (
    "id", "state", "submitted", "claimed_at", "deadline", "finished_at", "messages", "cost", "planned_parts",
    "planned_cost", "decided_at",
)  # fmt: skip


def _tells_prices(row: Row[Any]) -> bool:
    whole = row.state == ACCEPTED and row.messages == row.submitted and row.cost is not None
    return whole and row.planned_parts is not None and bool(Decimal(row.planned_cost))


def _billed(row: Row[Any], low: Decimal, high: Decimal) -> BilledRequest:
    """Return a request as the account sees it, by the least and the largest share of a price that one has cost."""
    planned = Decimal(row.planned_cost)
    most = Decimal("Infinity") if row.planned_parts is None else planned * high
    # Only a response counts messages. A request that its own process called not sent was not posted, or refused.
    is_answered = row.state in (ACCEPTED, NOT_SENT) and row.messages is not None
    is_refused = row.state == NOT_SENT and row.decided_at is None
    stated = Decimal(row.cost or 0) if is_answered or is_refused else None
    closed_at = row.deadline if stated is None else row.finished_at
    return BilledRequest(row.id, row.claimed_at, closed_at, planned * low, most, stated)


def note_evidence(store: LedgerBackend, campaign_name: str, evidence: Mapping[int, KeptEvidence]) -> None:
    """Record what the balance tells of a campaign's requests; no-op for requests that are not unknown."""

    def write(connection: Connection) -> None:
        for request_id, kept in evidence.items():
            this = request.c.id == request_id
            lapse(connection, this, store.clock())
            connection.execute(update(request).where(this, request.c.state == UNKNOWN).values(evidence=kept.written()))

    store.save(campaign_lock(campaign_name), write)
