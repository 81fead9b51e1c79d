"""What people ask the ledger: how a campaign stands, what is unknown, who was texted when. Nothing here writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, func, select, true

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.sending.claims import CLAIMED, UNKNOWN
from airflow_provider_sms.sending.schema import campaign, claimant, decision, former_holder, message, request
from airflow_provider_sms.sending.transitions import LAPSED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Executable
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.sending.store import Readable, Store

_IDS_AT_ONCE = 500


class SendingTask(NamedTuple):
    """A task that sent messages of a campaign.

    :param runs: DAG runs in which it did.
    :param tries: tries that did, of all runs and mapped copies.
    """

    dag_id: str
    task_id: str
    runs: int
    tries: int


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """How a campaign stands. Times are seconds since the epoch.

    :param messages: by the state of the request that holds them; one that was not sent holds none.
    :param requests: by state.
    :param parts: of accepted requests, as far as the service said.
    :param decisions: of people, about its requests.
    """

    campaign: str
    messages: Mapping[str, int]
    requests: Mapping[str, int]
    parts: int
    cost: Decimal
    first_activity: float
    last_activity: float
    decisions: int
    senders: tuple[SendingTask, ...]


class RequestRow(NamedTuple):
    """A request and who made it. Times are seconds since the epoch.

    :param messages: how many it holds now.
    :param state: ``claimed``, ``accepted``, ``unknown`` or ``not_sent``.
    :param reason: why, for the two latter; None where it was not noted.
    """

    request_id: int
    campaign: str
    messages: int
    state: str
    claimed_at: float
    finished_at: float | None
    event_id: int | None
    reason: str | None
    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int


def campaign_id(connection: Connection, name: str) -> int:
    """Give a campaign's id.

    :raises InputError: the ledger has no such campaign.
    """
    found: int | None = connection.execute(select(campaign.c.id).where(campaign.c.name == name)).scalar()
    if found is None:
        raise InputError(f"The ledger has no campaign {name!r}")
    return found


def state_at(now: float) -> ColumnElement[str]:
    """Give the expression for a request's state: a claim past its deadline is unknown, written down or not."""
    return case((_lapsed(now), UNKNOWN), else_=request.c.state)


def reason_at(now: float) -> ColumnElement[str | None]:
    """Give the expression for why a request is in its state."""
    return case((_lapsed(now), LAPSED), else_=request.c.reason)


def _lapsed(now: float) -> ColumnElement[bool]:
    return and_(request.c.state == CLAIMED, request.c.deadline < now)


def status(store: Store, name: str) -> CampaignStatus:
    """Say how a campaign stands.

    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    state = state_at(store.clock())
    with store.read() as connection:
        its = request.c.campaign_id == campaign_id(connection, name)
        held = (
            select(state, func.count())
            .select_from(request.join(message, message.c.request_id == request.c.id))
            .where(its)
            .group_by(state)
        )
        made = select(state, func.count()).where(its).group_by(state)
        costs = select(request.c.cost, func.count()).where(its, request.c.cost.is_not(None)).group_by(request.c.cost)
        began, first, last, parts = connection.execute(
            select(
                func.max(campaign.c.created_at),
                func.min(request.c.claimed_at),
                func.max(func.coalesce(request.c.finished_at, request.c.claimed_at)),
                func.sum(request.c.parts),
            )
            .select_from(campaign.outerjoin(request))
            .where(campaign.c.name == name)
        ).one()
        decided, decided_last = connection.execute(
            select(func.count(decision.c.decided_by), func.max(decision.c.decided_at))
            .select_from(decision.join(request, request.c.id == decision.c.request_id))
            .where(its)
        ).one()
        senders = (
            select(
                claimant.c.dag_id,
                claimant.c.task_id,
                func.count(claimant.c.run_id.distinct()),
                func.count(claimant.c.id.distinct()),
            )
            .select_from(request.join(claimant))
            .where(its)
            .group_by(claimant.c.dag_id, claimant.c.task_id)
            .order_by(claimant.c.dag_id, claimant.c.task_id)
        )
        return CampaignStatus(
            campaign=name,
            messages=_by_state(connection, held),
            requests=_by_state(connection, made),
            parts=int(parts or 0),
            cost=sum((Decimal(cost) * count for cost, count in connection.execute(costs)), Decimal(0)),
            first_activity=began if first is None else first,
            last_activity=max(time for time in (began, last, decided_last) if time is not None),
            decisions=decided,
            senders=tuple(SendingTask(*row) for row in connection.execute(senders)),
        )


def _by_state(connection: Connection, query: Executable) -> dict[str, int]:
    return {state: count for state, count in connection.execute(query)}  # noqa: C416  # rows are no pairs to dict()


def unknown_requests(store: Readable, name: str | None = None) -> list[RequestRow]:
    """Give the requests whose outcome is unknown, oldest first.

    :param name: of the campaign; None for all.
    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        now = store.clock()
        its = true() if name is None else request.c.campaign_id == campaign_id(connection, name)
        return _requests(connection, and_(its, state_at(now) == UNKNOWN), now)


def count_under_way(store: Readable, name: str) -> int:
    """Count the requests of a campaign whose process may still record what becomes of them.

    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        its = request.c.campaign_id == campaign_id(connection, name)
        under_way = and_(its, state_at(store.clock()) == CLAIMED)
        count: int = connection.execute(select(func.count()).select_from(request).where(under_way)).scalar_one()
        return count


def named_requests(store: Readable, ids: Collection[int]) -> list[RequestRow]:
    """Give requests by their ids, in order.

    :raises InputError: one is not in the ledger.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        found = _requests_among(connection, sorted(set(ids)), store.clock())
    missing = sorted(set(ids) - {row.request_id for row in found})
    if missing:
        raise InputError(f"The ledger has no request {missing[0]}")
    return found


def texted(store: Readable, destination: str) -> list[RequestRow]:
    """Give the requests that texted a number or may have, in order; ``messages`` counts those to this number.

    Reads every message of the ledger: there is no index of numbers, which would make every claim dearer.

    :param destination: digits with country code.
    :raises LedgerError: when the ledger cannot be read.
    """
    its = message.c.destination == int(destination)
    same = and_(
        former_holder.c.campaign_id == message.c.campaign_id, former_holder.c.message_key == message.c.message_key
    )
    counts: Counter[int] = Counter()
    with store.read() as connection:
        counts.update(connection.execute(select(message.c.request_id).where(its)).scalars())
        # A message that was sent anew may have been sent by the requests that it was taken from, too.
        taken = select(former_holder.c.request_id).select_from(message.join(former_holder, same))
        counts.update(connection.execute(taken.where(its, message.c.taken_from.is_not(None))).scalars())
        rows = _requests_among(connection, sorted(counts), store.clock())
    return [row._replace(messages=counts[row.request_id]) for row in rows]


def _requests_among(connection: Connection, ids: list[int], now: float) -> list[RequestRow]:
    rows: list[RequestRow] = []
    for start in range(0, len(ids), _IDS_AT_ONCE):
        rows += _requests(connection, request.c.id.in_(ids[start : start + _IDS_AT_ONCE]), now)
    return rows


def _requests(connection: Connection, which: ColumnElement[bool], now: float) -> list[RequestRow]:
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    query = (
        select(
            request.c.id,
            campaign.c.name,
            held,
            state_at(now),
            request.c.claimed_at,
            request.c.finished_at,
            request.c.event_id,
            reason_at(now),
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            claimant.c.try_number,
        )
        .select_from(request.join(campaign).join(claimant))
        .where(which)
        .order_by(request.c.id)
    )
    return [RequestRow(*row) for row in connection.execute(query)]
