"""Requests as people see them: which are unknown, which texted a number, what became of each. Read only."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, func, select, true

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import kept_evidence
from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.ledger.model import CLAIMED, UNKNOWN, Claimant
from airflow_provider_sms.ledger.schema import attempt, campaign, message, request, superseded
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend


class RequestRow(NamedTuple):
    """A request, and the attempt that made it. Times are seconds since the epoch.

    :param state: a :class:`~airflow_provider_sms.ledger.model.RequestState`; unknown where its claim has lapsed.
    :param taken: of these, how many the service took; None where it did not say.
    :param messages: how many it holds now; none once it is superseded.
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
    deadline: float = 0.0
    parts: int | None = None
    cost: str | None = None
    evidence: KeptEvidence | None = None
    account: str | None = None
    conn_id: str | None = None

    @property
    def task_instance(self) -> tuple[str, str, str, int]:
        """The DAG, the task, the run and the map index."""
        return self.dag_id, self.task_id, self.run_id, self.map_index


def _select(which: ColumnElement[bool], now: float) -> Select[Any]:
    """Return the query for the fields of :class:`RequestRow`, in their order."""
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    its, of_attempt = request.c, attempt.c
    return (
        select(
            *(its.id, campaign.c.name, its.kind, state_at(now), its.submitted, its.messages, held, its.claimed_at),
            *(its.finished_at, its.event_id, reason_at(now), of_attempt.dag_id, of_attempt.task_id, of_attempt.run_id),
            *(of_attempt.map_index, of_attempt.try_number, its.deadline, its.parts, its.cost, its.evidence),
            *(its.account, of_attempt.conn_id),
        )
        .select_from(request.join(campaign).join(attempt, attempt.c.id == its.attempt_id))
        .where(which)
    )


def _rows(connection: Connection, query: Select[Any]) -> list[RequestRow]:
    rows: Iterator[Any] = map(RequestRow._make, connection.execute(query))
    return [row._replace(evidence=kept_evidence(row.evidence)) for row in rows]


def requests_among(connection: Connection, ids: Collection[int], now: float) -> list[RequestRow]:
    """Return requests by their ids, in order, without those that the ledger does not have."""
    pieces = [_select(request.c.id.in_(some), now).order_by(request.c.id) for some in in_pieces(sorted(ids))]
    return [row for piece in pieces for row in _rows(connection, piece)]


def unknown_requests(store: LedgerBackend, name: str | None = None, who: Claimant | None = None) -> list[RequestRow]:
    """Return the requests whose outcome is unknown, oldest first."""

    def read(connection: Connection) -> list[RequestRow]:
        now = store.clock()
        which = true() if name is None else request.c.campaign_id == require_campaign(connection, name)
        made_by = true() if who is None else of_task(who)
        # The written states are indexed.
        is_unknown = and_(request.c.state.in_((CLAIMED, UNKNOWN)), state_at(now) == UNKNOWN)
        return _rows(connection, _select(and_(which, made_by, is_unknown), now).order_by(request.c.id))

    return store.fetch(read)


def named_requests(store: LedgerBackend, ids: Collection[int]) -> list[RequestRow]:
    """Return requests by their ids, in order.

    :raises InputError: the ledger does not have all of them.
    """
    # A database refuses to compare its column with an id that this cannot hold.
    possible = {each for each in ids if 0 < each < 2**63}
    found = store.fetch(lambda connection: requests_among(connection, possible, store.clock()))
    missing = sorted(set(ids) - {row.request_id for row in found})
    if missing:
        raise InputError(f"The ledger has no request {missing[0]}")
    return found


def texted(store: LedgerBackend, destination: str) -> list[RequestRow]:
    """Return the requests that texted a number or may have, in order; ``messages`` counts those to this number.

    Reads every message of the ledger: there is no index of numbers, which would make every claim slower.

    :param destination: digits with country code.
    """
    counts: Counter[int] = Counter()
    with store.read() as connection:
        for table in (message, superseded):
            to_it = select(table.c.request_id).where(table.c.destination == int(destination))
            counts.update(connection.scalars(to_it))
        found = requests_among(connection, counts, store.clock())
    return [row._replace(messages=counts[row.request_id]) for row in found]
