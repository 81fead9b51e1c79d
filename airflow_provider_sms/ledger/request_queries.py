"""Requests as the ledger has them: which are unknown, which texted a number, what became of each. Read only."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, func, select, true

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import kept_evidence
from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import in_pieces, require_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Claimant
from airflow_provider_sms.ledger.schema import campaign, claimant, former_holder, message, request
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable

_NO_DESTINATIONS: Mapping[bytes, int | None] = MappingProxyType({})

_RESPONSES_AT_ONCE = 100
"""Responses in memory at a time: each may have several kilobytes."""


class RequestRow(NamedTuple):
    """A request, and the attempt that made it. Times are seconds since the epoch.

    :param campaign: name of its campaign.
    :param kind: ``bulk`` or ``group``.
    :param state: ``claimed``, ``accepted``, ``unknown`` or ``not_sent``; unknown where its claim has lapsed.
    :param submitted: messages that were to be posted.
    :param taken: of these, how many the service took; None where it did not say.
    :param messages: how many it holds now: later requests may have taken some over.
    :param finished_at: when its outcome was recorded; None while there is none.
    :param reason: why it is unknown or was not sent; None where that was not recorded.
    :param mine: whether the attempt that asks made it; False where none asks.
    :param response: as the ledger keeps it, JSON; None where none came or it was not read.
    :param parts: SMS parts that it was charged for; None where that is not known or was not read.
    :param cost: in credits, as a decimal; None likewise.
    :param destinations: of its messages, by message key; read only where the service took fewer than were submitted.
    :param evidence: what the balance tells of it, where its response was lost; None where that was not judged.
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
    mine: bool = False
    response: str | None = None
    parts: int | None = None
    cost: str | None = None
    destinations: Mapping[bytes, int | None] = _NO_DESTINATIONS
    evidence: KeptEvidence | None = None

    @property
    def task_instance(self) -> tuple[str, str, str, int]:
        """The DAG, the task, the run and the map index."""
        return self.dag_id, self.task_id, self.run_id, self.map_index


def _select(which: ColumnElement[bool], now: float, *more: ColumnElement[Any]) -> Select[Any]:
    """Return the query for the columns that :func:`_row` takes, in the order of the ids.

    :param now: seconds since the epoch.
    :param more: ``mine``, ``response``, ``parts`` and ``cost``, in this order, as far as they are read.
    """
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    return (
        select(
            request.c.evidence,
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
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            claimant.c.try_number,
            *more,
        )
        .select_from(request.join(campaign).join(claimant))
        .where(which)
        .order_by(request.c.id)
    )


def _row(columns: Iterable[Any]) -> RequestRow:
    evidence, *others = columns
    return RequestRow(*others)._replace(evidence=kept_evidence(evidence))


def read_requests(connection: Connection, which: ColumnElement[bool], now: float) -> list[RequestRow]:
    """Return requests in the order of their ids.

    :param now: seconds since the epoch.
    """
    return [_row(row) for row in connection.execute(_select(which, now))]


def requests_among(connection: Connection, ids: Collection[int], now: float) -> list[RequestRow]:
    """Return requests by their ids, in order, without those that the ledger does not have.

    :param now: seconds since the epoch.
    """
    pieces = in_pieces(sorted(ids))
    return [row for piece in pieces for row in read_requests(connection, request.c.id.in_(piece), now)]


def unknown_requests(store: Readable, name: str | None = None, who: Claimant | None = None) -> list[RequestRow]:
    """Return the requests whose outcome is unknown, oldest first, without those whose messages were all sent again.

    :param name: the campaign's name; None means all campaigns.
    :param who: an attempt of the task instance whose requests are meant; None means any.
    :raises InputError: the ledger has no such campaign.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        now = store.clock()
        which = true() if name is None else request.c.campaign_id == require_campaign(connection, name)
        made_by = true() if who is None else of_task(who)
        found = read_requests(connection, and_(which, made_by, state_at(now) == UNKNOWN), now)
    return [row for row in found if row.messages]


def named_requests(store: Readable, ids: Collection[int]) -> list[RequestRow]:
    """Return requests by their ids, in order.

    :raises InputError: the ledger does not have all of them.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        # A database refuses to compare its column with an id that this cannot hold.
        found = requests_among(connection, {each for each in ids if 0 < each < 2**63}, store.clock())
    missing = sorted(set(ids) - {row.request_id for row in found})
    if missing:
        raise InputError(f"The ledger has no request {missing[0]}")
    return found


def claimants_of(store: Readable, ids: Collection[int]) -> dict[int, Claimant]:
    """Return the attempts that made requests, by request; a request that the ledger does not have is missing.

    :raises LedgerError: when the ledger cannot be read.
    """
    columns = [claimant.c[each.name] for each in fields(Claimant)]
    found: dict[int, Claimant] = {}
    with store.read() as connection:
        for piece in in_pieces(sorted(ids)):
            query = select(request.c.id, *columns).select_from(request.join(claimant)).where(request.c.id.in_(piece))
            found.update((request_id, Claimant(*who)) for request_id, *who in connection.execute(query))
    return found


def texted(store: Readable, destination: str) -> list[RequestRow]:
    """Return the requests that texted a number or may have, in order; ``messages`` counts those to this number.

    Reads every message of the ledger: there is no index of numbers, which would make every claim slower.

    :param destination: digits with country code.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        counts = _count_messages_to(connection, destination)
        found = requests_among(connection, counts, store.clock())
    return [row._replace(messages=counts[row.request_id]) for row in found]


def _count_messages_to(connection: Connection, destination: str) -> Counter[int]:
    """Count the messages to a number by the requests that sent them or may have."""
    columns = (message.c.campaign_id, message.c.message_key, message.c.request_id, message.c.taken_from)
    held = connection.execute(select(*columns).where(message.c.destination == int(destination))).all()
    counts = Counter(row.request_id for row in held)
    # A message that was sent again may have been sent by the requests that it was taken from, too.
    for row in (each for each in held if each.taken_from is not None):
        same = and_(former_holder.c.campaign_id == row.campaign_id, former_holder.c.message_key == row.message_key)
        counts.update(connection.execute(select(former_holder.c.request_id).where(same)).scalars())
    return counts


def read_records(
    connection: Connection, ids: Collection[int], mine: ColumnElement[bool], now: float
) -> list[RequestRow]:
    """Return requests for a report, with response and destinations where the service took only some of the messages.

    :param mine: the condition for the claimants of the attempt that asks.
    :param now: seconds since the epoch.
    """
    response = case((request.c.messages < request.c.submitted, request.c.response))
    found: list[RequestRow] = []
    for piece in in_pieces(sorted(ids)):
        query = _select(request.c.id.in_(piece), now, mine, response)
        rows = [_row(row) for row in connection.execute(query)]
        destinations = _destinations(connection, [row.request_id for row in rows if row.response is not None])
        found += [row._replace(mine=bool(row.mine), destinations=destinations[row.request_id]) for row in rows]
    return found


def _destinations(connection: Connection, ids: Sequence[int]) -> defaultdict[int, dict[bytes, int | None]]:
    found: defaultdict[int, dict[bytes, int | None]] = defaultdict(dict)
    if ids:
        columns = (message.c.request_id, message.c.message_key, message.c.destination)
        for request_id, key, destination in connection.execute(select(*columns).where(message.c.request_id.in_(ids))):
            found[request_id][bytes(key)] = destination
    return found


def requests_of_legs(store: LedgerBackend, campaign_id: int, claimants: Collection[int]) -> Iterator[RequestRow]:
    """Return the requests of earlier legs of an attempt that were sent or may have been, in order.

    Each has its response, parts and cost.

    ``submitted`` leaves out messages that other requests hold by now: where no response came, they may have taken some
    over.

    :param claimants: the ids of the legs.
    :raises LedgerError: when the ledger cannot be read.
    """
    if not claimants:
        return
    of_legs = and_(
        request.c.campaign_id == campaign_id, request.c.claimant_id.in_(claimants), request.c.state != NOT_SENT
    )
    with (
        store.read() as connection,
        closing(
            connection.execution_options(yield_per=_RESPONSES_AT_ONCE).execute(
                _select(of_legs, store.clock(), true(), request.c.response, request.c.parts, request.c.cost)
            )
        ) as rows,
    ):
        for each in rows:
            row = _row(each)
            yield row if row.response is not None else row._replace(submitted=row.messages)


def resent_by(store: Readable, campaign_id: int, claimants: Collection[int]) -> frozenset[bytes]:
    """Return the keys of messages that unknown requests of some claimants took over from other unknown requests.

    :raises LedgerError: when the ledger cannot be read.
    """
    query = (
        select(message.c.message_key)
        .select_from(message.join(request, request.c.id == message.c.request_id))
        .where(
            request.c.campaign_id == campaign_id,
            request.c.claimant_id.in_(claimants),
            request.c.state.not_in((ACCEPTED, NOT_SENT)),
            message.c.taken_from.is_not(None),
        )
    )
    with store.read() as connection:
        return frozenset(map(bytes, connection.execute(query).scalars()))


class KeptResponses:
    """Reads the responses of the service in a campaign, as the ledger keeps them: JSON. Each call reads them anew.

    :param campaign_id: the campaign's id in the ledger.
    :param who: an attempt of the task instance.
    """

    def __init__(self, store: LedgerBackend, campaign_id: int, who: Claimant) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._who = who

    def count(self) -> int:
        """Count the responses to this task instance's requests in this campaign, of all its attempts.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = select(func.count()).select_from(request.join(claimant)).where(self._of_this_task)
        with self._store.read() as connection:
            return int(connection.execute(query).scalar_one())

    def first(self, limit: int) -> list[str]:
        """Return the responses to this task instance's requests in this campaign, of all attempts, in request order.

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
        """Return the response to the request that holds a message, of any attempt; None where there is none.

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
