"""What people ask the ledger: how a campaign stands, what is unknown, who was texted when. Nothing here writes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, func, select, true

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import require_campaign
from airflow_provider_sms.ledger.model import CLAIMED, UNKNOWN
from airflow_provider_sms.ledger.schema import campaign, claimant, decision, former_holder, message, request
from airflow_provider_sms.ledger.transitions import current_state, reason_at, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Executable
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable
    from airflow_provider_sms.ledger.model import Claimant


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


def status(store: LedgerBackend, name: str) -> CampaignStatus:
    """Say how a campaign stands.

    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    state = state_at(store.clock())
    with store.read() as connection:
        its = request.c.campaign_id == require_campaign(connection, name)
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
        its = true() if name is None else request.c.campaign_id == require_campaign(connection, name)
        return _requests(connection, and_(its, state_at(now) == UNKNOWN), now)


def count_under_way(store: Readable, name: str) -> int:
    """Count the requests of a campaign whose process may still record what becomes of them.

    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        its = request.c.campaign_id == require_campaign(connection, name)
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


_RECORDS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request, as recorded.

    :param state: ``claimed``, ``accepted``, ``unknown`` or ``not_sent``.
    :param mine: whether this try made it.
    :param lapsed: whether it is claimed, and its deadline has passed.
    :param submitted: messages that were to be posted.
    :param messages: of these, how many the service took; None where it did not say.
    :param claimed_at: seconds since the epoch.
    :param finished_at: when its outcome was recorded, seconds since the epoch; None while there is none.
    :param response: the answer as received, JSON, where it took fewer than were submitted; else None.
    :param destinations: those of its messages, where it took fewer than were submitted; else none.
    """

    request_id: int
    state: str
    mine: bool
    lapsed: bool
    submitted: int
    messages: int | None
    claimed_at: float
    finished_at: float | None
    event_id: int | None
    reason: str | None
    response: str | None
    destinations: Sequence[int | None] = ()


def read_records(
    connection: Connection, ids: Collection[int], mine: ColumnElement[bool], now: float
) -> list[RequestRecord]:
    """Read what is recorded of requests.

    :param mine: the condition for claimants that are this try.
    :param now: seconds since the epoch, by the ledger's clock.
    """
    ordered = sorted(ids)
    parts = (ordered[start : start + _RECORDS_AT_ONCE] for start in range(0, len(ordered), _RECORDS_AT_ONCE))
    return [record for part in parts for record in _read(connection, part, mine, now)]


def _read(connection: Connection, ids: Sequence[int], mine: ColumnElement[bool], now: float) -> Iterator[RequestRecord]:
    left_some_out = request.c.messages < request.c.submitted
    query = (
        select(
            request.c.id,
            request.c.state,
            mine.label("mine"),
            request.c.deadline,
            request.c.submitted,
            request.c.messages,
            request.c.claimed_at,
            request.c.finished_at,
            request.c.event_id,
            request.c.reason,
            case((left_some_out, request.c.response)).label("response"),
        )
        .select_from(request.join(claimant))
        .where(request.c.id.in_(ids))
    )
    rows = connection.execute(query).all()
    destinations = _destinations(connection, [row.id for row in rows if row.response is not None])
    for row in rows:
        yield RequestRecord(
            request_id=row.id,
            state=row.state,
            mine=bool(row.mine),
            lapsed=current_state(row.state, row.deadline, now) != row.state,
            submitted=row.submitted,
            messages=row.messages,
            claimed_at=row.claimed_at,
            finished_at=row.finished_at,
            event_id=row.event_id,
            reason=row.reason,
            response=row.response,
            destinations=destinations.get(row.id, ()),
        )


def _destinations(connection: Connection, ids: Sequence[int]) -> dict[int, list[int | None]]:
    found: defaultdict[int, list[int | None]] = defaultdict(list)
    if ids:
        query = select(message.c.request_id, message.c.destination).where(message.c.request_id.in_(ids))
        for request_id, destination in connection.execute(query):
            found[request_id].append(destination)
    return found


class KeptResponses:
    """Reads those answers, as they were received: JSON. Each call reads the ledger anew.

    :param campaign_id: in the ledger.
    :param who: a try of the task instance whose requests are meant.
    """

    def __init__(self, store: LedgerBackend, campaign_id: int, who: Claimant) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._who = who

    def count(self) -> int:
        """Count the answers to this task instance's requests in this campaign, of all its tries.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = select(func.count()).select_from(request.join(claimant)).where(self._of_this_task)
        with self._store.read() as connection:
            return int(connection.execute(query).scalar_one())

    def first(self, limit: int) -> list[str]:
        """Give the answers to this task instance's requests in this campaign, of all its tries, in request order.

        :param limit: how many at most.
        :raises LedgerError: when the ledger cannot be read.
        """
        query = (
            select(request.c.response)
            .select_from(request.join(claimant))
            .where(self._of_this_task)
            .order_by(request.c.id)
            .limit(limit)
        )
        with self._store.read() as connection:
            return [response for (response,) in connection.execute(query)]

    def to(self, key: bytes) -> str | None:
        """Give the answer to the request that holds a message, whoever made it; None where there is none.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = (
            select(request.c.response)
            .select_from(message.join(request, request.c.id == message.c.request_id))
            .where(message.c.campaign_id == self._campaign_id, message.c.message_key == key)
        )
        with self._store.read() as connection:
            response: str | None = connection.execute(query).scalar()
        return response

    @property
    def _of_this_task(self) -> ColumnElement[bool]:
        return and_(request.c.campaign_id == self._campaign_id, request.c.response.is_not(None), of_task(self._who))
