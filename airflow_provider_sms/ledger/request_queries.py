"""Requests as the ledger has them: which are unknown, which texted a number, what became of each. Read only."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, func, or_, select, true

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import kept_evidence
from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN, Claimant, RequestState
from airflow_provider_sms.ledger.schema import attempt, campaign, message, request, superseded
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable

_RESPONSES_AT_ONCE = 1000
"""Responses in memory at a time: each may have several kilobytes."""


class RequestRow(NamedTuple):
    """A request, and the attempt that made it. Times are seconds since the epoch.

    :param campaign: name of its campaign.
    :param kind: ``bulk`` or ``group``.
    :param state: ``claimed``, ``accepted``, ``unknown`` or ``not_sent``; unknown where its claim has lapsed.
    :param submitted: messages that were to be posted.
    :param taken: of these, how many the service took; None where it did not say.
    :param messages: how many it holds now; none once it is superseded.
    :param finished_at: when its outcome was recorded; None while there is none.
    :param reason: why it is unknown or was not sent; None where that was not recorded.
    :param attempt_id: the process of the attempt that made it, by its id in the ledger.
    :param evidence: what the balance tells of it, where its response was lost; None where that was not judged.
    :param cost: credits, as a decimal.
    """

    request_id: int
    campaign: str
    kind: str
    state: str
    submitted: int
    taken: int | None
    messages: int
    claimed_at: float
    finished_at: float | None
    event_id: int | None
    reason: str | None
    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    attempt_id: int
    evidence: KeptEvidence | None = None
    parts: int | None = None
    cost: str | None = None

    @property
    def task_instance(self) -> tuple[str, str, str, int]:
        """The DAG, the task, the run and the map index."""
        return self.dag_id, self.task_id, self.run_id, self.map_index


def _select(which: ColumnElement[bool], now: float) -> Select[Any]:
    """Return the query for the columns that :func:`_row` takes, in the order of the ids."""
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    return (
        select(
            request.c.evidence,
            request.c.parts,
            request.c.cost,
            request.c.id,
            campaign.c.name,
            request.c.kind,
            state_at(now),
            request.c.submitted,
            request.c.messages,
            held,
            request.c.claimed_at,
            request.c.finished_at,
            request.c.event_id,
            reason_at(now),
            attempt.c.dag_id,
            attempt.c.task_id,
            attempt.c.run_id,
            attempt.c.map_index,
            attempt.c.try_number,
            request.c.attempt_id,
        )
        .select_from(request.join(campaign).join(attempt, attempt.c.id == request.c.attempt_id))
        .where(which)
        .order_by(request.c.id)
    )


def _row(columns: Iterable[Any]) -> RequestRow:
    evidence, parts, cost, *others = columns
    return RequestRow(*others)._replace(evidence=kept_evidence(evidence), parts=parts, cost=cost)


def read_requests(connection: Connection, which: ColumnElement[bool], now: float) -> list[RequestRow]:
    """Return requests in the order of their ids."""
    return [_row(row) for row in connection.execute(_select(which, now))]


def requests_among(connection: Connection, ids: Collection[int], now: float) -> list[RequestRow]:
    """Return requests by their ids, in order, without those that the ledger does not have."""
    pieces = in_pieces(sorted(ids))
    return [row for piece in pieces for row in read_requests(connection, request.c.id.in_(piece), now)]


def unknown_requests(store: Readable, name: str | None = None, who: Claimant | None = None) -> list[RequestRow]:
    """Return the requests whose outcome is unknown, oldest first.

    :param name: the campaign's name; None means all campaigns.
    :param who: an attempt of the task instance whose requests are meant; None means any.
    """
    with store.read() as connection:
        now = store.clock()
        which = true() if name is None else request.c.campaign_id == require_campaign(connection, name)
        made_by = true() if who is None else of_task(who)
        # The written states are indexed.
        is_unknown = and_(request.c.state.in_((CLAIMED, UNKNOWN)), state_at(now) == UNKNOWN)
        return read_requests(connection, and_(which, made_by, is_unknown), now)


def newest_requests(
    store: Readable, campaign_id: int, *, before: int | None = None, state: str | None = None, limit: int = 50
) -> list[RequestRow]:
    """Return requests of a campaign, newest first.

    :param before: return only requests made before this one; None means from the newest on.
    :param state: None means any.
    """
    with store.read() as connection:
        now = store.clock()
        of_campaign = and_(request.c.campaign_id == campaign_id, true() if before is None else request.c.id < before)
        # One query for each written state: the index holds the requests of one state in order, and SQLite would sort
        # all of a query for several.
        found: list[RequestRow] = []
        for written in RequestState:
            which = and_(of_campaign, request.c.state == written, true() if state is None else state_at(now) == state)
            query = _select(which, now).order_by(None).order_by(request.c.id.desc()).limit(limit)
            found += map(_row, connection.execute(query))
    return sorted(found, key=lambda row: -row.request_id)[:limit]


def named_requests(store: Readable, ids: Collection[int]) -> list[RequestRow]:
    """Return requests by their ids, in order.

    :raises InputError: the ledger does not have all of them.
    """
    with store.read() as connection:
        # A database refuses to compare its column with an id that this cannot hold.
        found = requests_among(connection, {each for each in ids if 0 < each < 2**63}, store.clock())
    missing = sorted(set(ids) - {row.request_id for row in found})
    if missing:
        raise InputError(f"The ledger has no request {missing[0]}")
    return found


def texted(store: Readable, destination: str) -> list[RequestRow]:
    """Return the requests that texted a number or may have, in order; ``messages`` counts those to this number.

    Reads every message of the ledger: there is no index of numbers, which would make every claim slower.

    :param destination: digits with country code.
    """
    with store.read() as connection:
        counts = _count_messages_to(connection, destination)
        found = requests_among(connection, counts, store.clock())
    return [row._replace(messages=counts[row.request_id]) for row in found]


def _count_messages_to(connection: Connection, destination: str) -> Counter[int]:
    """Count the messages to a number by the requests that sent them or may have."""
    counts: Counter[int] = Counter()
    for table in (message, superseded):
        counts.update(
            connection.execute(select(table.c.request_id).where(table.c.destination == int(destination))).scalars()
        )
    return counts


class SentRequest(NamedTuple):
    """What a request adds to the sums of its attempt.

    :param state: ``accepted``, ``not_sent`` if the service took nothing of it, otherwise one that may have been sent.
    :param taken: messages that the service took; None where it did not say.
    :param cost: credits, as a decimal; None where nothing tells them.
    :param response: as the ledger keeps it, JSON; None where none came.
    """

    state: str
    submitted: int
    taken: int | None
    parts: int | None
    cost: str | None
    finished_at: float | None
    response: str | None


def sent_requests(store: LedgerBackend, campaign_id: int, claimants: Collection[int]) -> Iterator[SentRequest]:
    """Yield the requests of an attempt that were sent, may have been, or were refused in whole."""
    names = ("id", "state", "submitted", "messages", "parts", "cost", "finished_at", "response")
    query = (
        select(*(request.c[name] for name in names))
        .where(
            request.c.campaign_id == campaign_id,
            request.c.attempt_id.in_(claimants),
            or_(request.c.state != NOT_SENT, request.c.response.is_not(None)),
        )
        .order_by(request.c.id)
        .limit(_RESPONSES_AT_ONCE)
    )
    last = 0
    while True:
        page = query.where(request.c.id > last)
        rows = store.fetch(lambda connection: connection.execute(page).all())  # noqa: B023  # it is called at once
        for _, *columns in rows:
            yield SentRequest(*columns)
        if not rows:
            return
        last = rows[-1].id


def last_request(store: LedgerBackend) -> int:
    """Return the id of the last request that was claimed; 0 where there is none."""
    return store.fetch(lambda connection: connection.scalar(select(func.max(request.c.id))) or 0)


def sent_after(store: LedgerBackend, who: Claimant, request_id: int, *, resends: bool) -> tuple[int, Decimal]:
    """Return how many messages a task instance has sent, or may have, and the credits that these were to cost.

    :param request_id: only later requests count.
    :param resends: whether unknown messages are sent again, so that the plan has them.
    """
    states = (ACCEPTED, CLAIMED, *(() if resends else (UNKNOWN,)))
    which = and_(of_task(who), request.c.id > request_id, request.c.state.in_(states))
    by_cost = select(request.c.planned_cost, func.count(), func.sum(request.c.submitted)).join(attempt).where(which)
    rows = store.fetch(lambda connection: connection.execute(by_cost.group_by(request.c.planned_cost)).all())
    with own_decimals():
        cost = sum((Decimal(each or 0) * requests for each, requests, _ in rows), Decimal(0))
    return sum(int(messages) for *_, messages in rows), cost


def superseded_keys(connection: Connection, campaign_id: int, keys: Sequence[bytes]) -> set[bytes]:
    """Return which messages a superseded request had."""
    here = and_(superseded.c.campaign_id == campaign_id, request.c.state == SUPERSEDED)
    had = superseded.join(request, request.c.id == superseded.c.request_id)
    if connection.execute(select(request.c.id).select_from(had).where(here).limit(1)).first() is None:
        return set()
    found: set[bytes] = set()
    for some in in_pieces(keys):
        query = select(superseded.c.message_key).select_from(had).where(here, superseded.c.message_key.in_(some))
        found.update(map(bytes, connection.execute(query).scalars()))
    return found


def resent(connection: Connection, request_ids: Sequence[int]) -> set[int]:
    """Return which requests hold messages that a superseded request had."""
    same = and_(superseded.c.campaign_id == message.c.campaign_id, superseded.c.message_key == message.c.message_key)
    had = message.join(superseded, same).join(request, request.c.id == superseded.c.request_id)
    query = select(message.c.request_id).distinct().select_from(had).where(request.c.state == SUPERSEDED)
    pieces = in_pieces(request_ids)
    return {each for some in pieces for each in connection.scalars(query.where(message.c.request_id.in_(some)))}


class KeptResponses:
    """Reads the responses of the service in a campaign, as the ledger keeps them: JSON. Each call reads them anew.

    :param who: an attempt of the task instance.
    """

    def __init__(self, store: LedgerBackend, campaign_id: int, who: Claimant) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._who = who

    def count(self) -> int:
        """Count the responses to this task instance's requests in this campaign, of all its attempts."""
        query = select(func.count()).select_from(request.join(attempt)).where(self._of_this_task)
        return self._store.fetch(lambda connection: int(connection.execute(query).scalar_one()))

    def first(self, limit: int) -> list[str]:
        """Return the responses to this task instance's requests in this campaign, of all attempts, in request order."""
        query = (
            select(request.c.response)
            .select_from(request.join(attempt))
            .where(self._of_this_task)
            .order_by(request.c.id)
            .limit(limit)
        )
        return self._store.fetch(lambda connection: list(connection.scalars(query)))

    def to(self, key: bytes) -> str | None:
        """Return the response to the request that holds a message, of any attempt; None where there is none."""
        query = (
            select(request.c.response)
            .select_from(message.join(request, request.c.id == message.c.request_id))
            .where(message.c.campaign_id == self._campaign_id, message.c.message_key == key)
        )
        return self._store.fetch(lambda connection: connection.scalar(query))

    @property
    def _of_this_task(self) -> ColumnElement[bool]:
        return and_(request.c.campaign_id == self._campaign_id, request.c.response.is_not(None), of_task(self._who))
