"""The durable ledger of claims: who may POST which message, and what became of it.

One rule carries the promise: a message may be POSTed only by whoever inserted its claim, and only after that insert is
durable. A claim is a row whose key is unique within its campaign, so there is no lease and no leader.

.. code-block:: text

    claimed ──► accepted | unknown | not_sent
    unknown ──► accepted | not_sent            by a late answer, or by a person

``not_sent`` releases its messages: their rows are deleted, so that they can be claimed again. A claim has a deadline;
past it the request is unknown, whoever made it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, select, update

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.sending.schema import campaign, claimant, message, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection, CursorResult
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.sending.store import Store

CLAIMED = "claimed"
ACCEPTED = "accepted"
UNKNOWN = "unknown"
NOT_SENT = "not_sent"

LAPSED = "no outcome was recorded before the deadline: the sending process ended or lost its answer"

_LOOKUP_KEYS = 1000
_HOLDERS = (
    "SELECT m.message_key, r.id, r.state, r.deadline, r.claimant_id FROM sms_message m "
    "JOIN sms_request r ON r.id = m.request_id WHERE m.campaign_id = ? AND m.message_key IN"
)
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: one try of one task instance.

    :param map_index: index of a mapped task, -1 for one that is not mapped.
    """

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class Holder:
    """The request that holds a message.

    :param state: ``claimed`` (its process may still live), ``accepted`` or ``unknown``.
    :param mine: whether this try made the request.
    """

    request_id: int
    state: str
    mine: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """The messages of one request to be.

    :param keys: message keys, 16 bytes each, without repeats.
    :param destinations: digits with country code, one for each key; None for a group.
    :param take_over: for keys that an unknown request holds and that are to be sent again, the id of that request.
    """

    keys: Sequence[bytes]
    destinations: Sequence[str | None]
    take_over: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of claiming a chunk.

    :param request_id: the new request; None when every key was somebody else's.
    :param won: the positions in the chunk that may be POSTed under this claim, in order.
    """

    request_id: int | None
    won: Sequence[int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request.

    :param state: ``accepted``, ``unknown`` or ``not_sent``.
    :param reason: why, for the two latter; no number, text or token.
    :param response: the body of the answer as received, JSON.
    """

    request_id: int
    state: str
    http_status: int | None = None
    event_id: int | None = None
    messages: int | None = None
    parts: int | None = None
    cost: str | None = None
    reason: str | None = None
    response: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit did.

    :param claims: one for each chunk.
    :param renewed: the requests whose deadline was moved; one that is missing was declared unknown meanwhile.
    """

    claims: Sequence[Claim]
    renewed: frozenset[int]


class CampaignLedger:
    """The ledger as one try of one task sees it: the claims of one campaign.

    Not thread-safe: one thread owns it.

    :param store: the open database.
    :param campaign_name: within it each message goes out at most once.
    :param who: this try.
    :param kind: ``bulk`` or ``group``.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        campaign_name: str,
        who: Claimant,
        *,
        kind: str = "bulk",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._who = who
        self._kind = kind
        self._clock = clock
        with store.write() as connection:
            self._campaign_id = self._enter(connection, campaign_name)
            row = connection.execute(insert(claimant).values({**_columns(who), "started_at": clock()}))
            self._claimant_id: int = _new_id(row)

    def _enter(self, connection: Connection, name: str) -> int:
        found: int | None = connection.execute(select(campaign.c.id).where(campaign.c.name == name)).scalar()
        if found is None:
            row = connection.execute(insert(campaign).values(name=name, created_at=self._clock()))
            found = _new_id(row)
        return found

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, Holder]:
        """Say which of the keys are held, and by what request; a key that is free is missing from the answer.

        :raises LedgerError: when the ledger cannot be read.
        """
        found: dict[bytes, Holder] = {}
        with self._store.read() as connection:
            for start in range(0, len(keys), _LOOKUP_KEYS):
                found.update(self._holders(connection, keys[start : start + _LOOKUP_KEYS]))
        return found

    def _holders(self, connection: Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, Holder]]:
        now = self._clock()
        # Written out: SQLAlchemy's IN costs more than the look-up itself.
        marks = ",".join("?" * len(keys))
        rows = connection.exec_driver_sql(f"{_HOLDERS} ({marks})", (self._campaign_id, *keys))
        for key, request_id, state, deadline, claimant_id in rows:
            seen = UNKNOWN if state == CLAIMED and deadline < now else state
            yield key, Holder(request_id, seen, claimant_id == self._claimant_id)

    def commit(
        self,
        *,
        outcomes: Sequence[Outcome] = (),
        renewals: Mapping[int, float] | None = None,
        chunks: Sequence[Chunk] = (),
        deadline: float = 0.0,
    ) -> Committed:
        """Record outcomes, move deadlines and claim chunks, all in one durable transaction.

        :param outcomes: of requests that this try claimed.
        :param renewals: request id → its new deadline, seconds since the epoch.
        :param chunks: what to claim.
        :param deadline: of the new claims, seconds since the epoch.
        :raises LedgerError: when it was not committed; then nothing of it may be relied on, and nothing may be sent.
        """
        with self._store.write() as connection:
            for outcome in outcomes:
                self._record(connection, outcome)
            renewed = frozenset(
                request_id
                for request_id, until in (renewals or {}).items()
                if self._renew(connection, request_id, until)
            )
            claims = [self._claim(connection, chunk, deadline) for chunk in chunks]
        return Committed(claims, renewed)

    def _record(self, connection: Connection, outcome: Outcome) -> None:
        recorded = connection.execute(
            update(request)
            .where(request.c.id == outcome.request_id, request.c.state.in_((CLAIMED, UNKNOWN)))
            .values(
                state=outcome.state,
                finished_at=self._clock(),
                http_status=outcome.http_status,
                event_id=_fitting(outcome.event_id),
                messages=_fitting(outcome.messages),
                parts=_fitting(outcome.parts),
                cost=outcome.cost,
                reason=outcome.reason,
                response=outcome.response,
            )
        )
        # A request that a person has called accepted meanwhile keeps its messages.
        if outcome.state == NOT_SENT and recorded.rowcount == 1:
            connection.execute(delete(message).where(message.c.request_id == outcome.request_id))

    def _renew(self, connection: Connection, request_id: int, until: float) -> bool:
        still_claimed = and_(request.c.id == request_id, request.c.state == CLAIMED)
        return connection.execute(update(request).where(still_claimed).values(deadline=until)).rowcount == 1

    def _claim(self, connection: Connection, chunk: Chunk, deadline: float) -> Claim:
        row = connection.execute(
            insert(request).values(
                campaign_id=self._campaign_id,
                claimant_id=self._claimant_id,
                kind=self._kind,
                state=CLAIMED,
                submitted=len(chunk.keys),
                claimed_at=self._clock(),
                deadline=deadline,
            )
        )
        request_id: int = _new_id(row)
        inserted = connection.exec_driver_sql(
            "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            [
                (self._campaign_id, key, None if destination is None else int(destination), request_id)
                for key, destination in zip(chunk.keys, chunk.destinations, strict=True)
            ],
        ).rowcount
        if inserted == len(chunk.keys):
            return Claim(request_id, range(inserted))
        for key, unknown_id in chunk.take_over.items():
            self._take_over(connection, key, unknown_id, request_id)
        holders = dict(self._holders(connection, chunk.keys))
        won = [position for position, key in enumerate(chunk.keys) if holders[key].request_id == request_id]
        if not won:
            connection.execute(delete(request).where(request.c.id == request_id))
            return Claim(None, won)
        connection.execute(update(request).where(request.c.id == request_id).values(submitted=len(won)))
        return Claim(request_id, won)

    def _take_over(self, connection: Connection, key: bytes, unknown_id: int, request_id: int) -> None:
        """Move a message from a request that is unknown to a new one; no-op when anything has changed meanwhile."""
        self._lapse(connection, request.c.id == unknown_id)
        still_unknown = select(request.c.id).where(request.c.id == unknown_id, request.c.state == UNKNOWN)
        connection.execute(
            update(message)
            .where(
                message.c.campaign_id == self._campaign_id,
                message.c.message_key == key,
                message.c.request_id.in_(still_unknown),
            )
            .values(request_id=request_id)
        )

    def lapse(self) -> None:
        """Call every claim of the campaign unknown whose deadline has passed.

        :raises LedgerError: when it was not committed.
        """
        with self._store.write() as connection:
            self._lapse(connection, request.c.campaign_id == self._campaign_id)

    def _lapse(self, connection: Connection, which: ColumnElement[bool]) -> None:
        lapsed = and_(which, request.c.state == CLAIMED, request.c.deadline < self._clock())
        connection.execute(update(request).where(lapsed).values(state=UNKNOWN, reason=LAPSED))

    def _of_this_task(self) -> ColumnElement[bool]:
        who = self._who
        return and_(
            request.c.campaign_id == self._campaign_id,
            request.c.response.is_not(None),
            claimant.c.dag_id == who.dag_id,
            claimant.c.task_id == who.task_id,
            claimant.c.run_id == who.run_id,
            claimant.c.map_index == who.map_index,
        )

    def count_responses(self) -> int:
        """Count the answers to this task instance's requests in this campaign, of all its tries.

        :raises LedgerError: when the ledger cannot be read.
        """
        query = select(func.count()).select_from(request.join(claimant)).where(self._of_this_task())
        with self._store.read() as connection:
            return int(connection.execute(query).scalar_one())

    def responses(self, limit: int) -> list[str]:
        """Give the answers to this task instance's requests in this campaign, of all its tries, in request order.

        :param limit: how many at most.
        :raises LedgerError: when the ledger cannot be read.
        """
        query = (
            select(request.c.response)
            .select_from(request.join(claimant))
            .where(self._of_this_task())
            .order_by(request.c.id)
            .limit(limit)
        )
        with self._store.read() as connection:
            return [response for (response,) in connection.execute(query)]

    def response_to(self, key: bytes) -> str | None:
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


def _new_id(inserted: CursorResult[Any]) -> int:
    key = inserted.inserted_primary_key
    if key is None:
        raise LedgerError("The database gave no id for a new row")
    return int(key[0])


def _fitting(number: int | None) -> int | None:
    """Drop a number that no 64-bit column holds: it must not cost the record of a send, and the response has it."""
    return None if number is None or abs(number) > _INT64_MAX else number


def _columns(who: Claimant) -> dict[str, str | int]:
    return {name: getattr(who, name) for name in Claimant.__slots__}
