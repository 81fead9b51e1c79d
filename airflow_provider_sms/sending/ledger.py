"""The durable ledger of claims: who may POST which message, and what became of it.

One rule carries the promise: a message may be POSTed only by whoever inserted its claim, and only after that insert is
durable. A claim is a row whose key is unique within its campaign, so there is no lease and no leader.

.. code-block:: text

    claimed ──► accepted | unknown | not_sent
    unknown ──► accepted | not_sent            by a late answer, or by a person

``not_sent`` releases its messages: their rows are deleted, so that they can be claimed again, or go back to the unknown
request that they were taken from. A claim has a deadline; past it the request is unknown, whoever made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, select, update

from airflow_provider_sms.sending.claims import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Claim, Claimant, Holder, Outcome
from airflow_provider_sms.sending.contacts import Capping, lock_groups
from airflow_provider_sms.sending.earlier import EarlierClaims, of_task, register
from airflow_provider_sms.sending.kept_responses import KeptResponses
from airflow_provider_sms.sending.parked import earlier_parts, requests_of
from airflow_provider_sms.sending.pauses import open_pause
from airflow_provider_sms.sending.row_records import read_records
from airflow_provider_sms.sending.schema import claimant, message, request
from airflow_provider_sms.sending.store import campaign_lock, enter_campaign
from airflow_provider_sms.sending.transitions import lapse, record, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.sending.claims import Chunk
    from airflow_provider_sms.sending.contacts import FrequencyCap
    from airflow_provider_sms.sending.parked import ParkedRequest
    from airflow_provider_sms.sending.pauses import Pause
    from airflow_provider_sms.sending.row_records import RequestRecord
    from airflow_provider_sms.sending.store import Store

FINISH_PATIENCE = 10.0
"""Seconds that the end of a try waits for another process's commit, each time that it is done."""


class CampaignLedger:
    """The ledger as one try of one task sees it: the claims of one campaign.

    Not thread-safe: one thread owns it.

    :param store: the open database.
    :param campaign_name: within it each message goes out at most once.
    :param who: this try.
    :param kind: ``bulk`` or ``group``.
    :param clock: seconds since the epoch; None for the store's.
    :param claimant_id: of this try, where it has registered itself; None: it is registered here.
    :param resumed: whether this try has sent before, and waited since: then what it sent is known as its own.
    :param cap: how often a person is texted by the campaigns of a group; None: as often as there are messages.
    """

    def __init__(
        self,
        store: Store,
        campaign_name: str,
        who: Claimant,
        *,
        kind: str = "bulk",
        clock: Callable[[], float] | None = None,
        claimant_id: int | None = None,
        resumed: bool = False,
        cap: FrequencyCap | None = None,
    ) -> None:
        self.campaign_name = campaign_name
        self._store = store
        self._who = who
        self._resumed = resumed
        self._kind = kind
        self.clock = store.clock if clock is None else clock
        self.paused: Pause | None = None
        """The pause that held at the last commit."""
        self._lock = campaign_lock(campaign_name)
        self._claimant_id = register(store, who, self.clock) if claimant_id is None else claimant_id
        self._parked = earlier_parts(store, who, self._claimant_id) if resumed else frozenset()
        with self._write() as connection:
            self._campaign_id = enter_campaign(connection, campaign_name, self.clock())
        self.responses = KeptResponses(store, self._campaign_id, who)
        """The service's answers in the campaign."""
        self._capping = None if cap is None else Capping(store, cap, self._campaign_id)

    def _write(self) -> AbstractContextManager[Connection]:
        return self._store.write(self._lock)

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, Holder]:
        """Say which of the keys are held, and by what request; a key that is free is missing from the answer.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read(quick=True) as connection:
            return self._holders(connection, keys)

    def _holders(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, Holder]:
        now = self.clock()
        return {
            key: Holder(
                request_id,
                UNKNOWN if state == CLAIMED and deadline < now else state,
                claimant_id == self._claimant_id,
                claimant_id in self._parked,
            )
            for key, request_id, state, deadline, claimant_id in self._store.holders(
                connection, self._campaign_id, keys
            )
        }

    def capped(self, destinations: Sequence[str]) -> set[str]:
        """Say who of some people would not be texted now, because of the frequency cap; nobody where there is none.

        Some thousands at once cost one statement. A claim decides anew.

        :param destinations: digits with country code.
        :raises LedgerError: when the ledger cannot be read.
        """
        return set() if self._capping is None else self._capping.capped(destinations, self.clock())

    def records(self, keys: Sequence[bytes]) -> tuple[dict[bytes, int], list[RequestRecord]]:
        """Say which request holds each of the keys, and what is recorded of those requests.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            rows = self._store.holders(connection, self._campaign_id, keys)
            held = {key: request_id for key, request_id, *_ in rows}
            return held, read_records(connection, set(held.values()), self._this_try, self.clock())

    def commit(
        self, *, outcomes: Sequence[Outcome] = (), chunks: Sequence[Chunk] = (), claim_seconds: float = 0.0
    ) -> list[Claim]:
        """Record outcomes, then claim chunks, all in one durable transaction.

        While the campaign is paused, outcomes are recorded and nothing is claimed; :attr:`paused` then says so. Whoever
        must not be texted yet, by the frequency cap, is in no claim.

        :param outcomes: of requests that this try claimed.
        :param chunks: what to claim.
        :param claim_seconds: how long the new claims are this process's alone.
        :returns: one claim for each chunk; none at all while the campaign is paused.
        :raises LedgerError: when it was not committed; then nothing of it may be relied on, and nothing may be sent.
        """
        with self._write() as connection:
            now = self.clock()
            unsent = [outcome.request_id for outcome in outcomes if outcome.state == NOT_SENT]
            capping = self._capping if chunks else None
            groups: Collection[int] = ()
            if unsent or capping is not None:
                groups = lock_groups(self._store, connection, unsent, None if capping is None else capping.group_id)
            answers = [values_of(outcome, now) for outcome in outcomes if outcome.state == ACCEPTED]
            if answers:
                self._store.record_answers(connection, answers)
            for outcome in outcomes:
                if outcome.state != ACCEPTED:
                    record(connection, outcome, now, groups)
            self.paused = open_pause(connection, self._campaign_id)
            if self.paused is not None:
                return []
            # Counted from here: other processes may have kept this one waiting for the lock.
            deadline = self.clock() + claim_seconds
            return self._claim(connection, chunks, deadline) if chunks else []

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Record the last outcomes, and give back every claim of this try that is still open.

        Only for when no post is under way: then an open claim is one whose commit raised although it became durable,
        and nothing was posted under it.

        :raises LedgerError: when it was not committed.
        """
        mine = and_(request.c.claimant_id == self._claimant_id, request.c.state == CLAIMED)
        still_open = select(request.c.id).where(mine)
        # It is done again and again: none of these times may last as long as others may keep a send waiting.
        with self._store.write(self._lock, patience=FINISH_PATIENCE) as connection:
            unsent = [outcome.request_id for outcome in outcomes if outcome.state == NOT_SENT]
            groups = lock_groups(self._store, connection, [*unsent, *connection.execute(still_open).scalars()])
            for outcome in outcomes:
                record(connection, outcome, self.clock(), groups)
            for request_id in connection.execute(still_open).scalars().all():
                record(connection, Outcome(request_id, NOT_SENT), self.clock(), groups)

    def _claim(self, connection: Connection, chunks: Sequence[Chunk], deadline: float) -> list[Claim]:
        now = self.clock()
        claim = {
            "campaign_id": self._campaign_id,
            "claimant_id": self._claimant_id,
            "kind": self._kind,
            "state": CLAIMED,
            "claimed_at": now,
            "deadline": deadline,
        }
        sizes = [len(chunk.keys) for chunk in chunks]
        ids = self._store.insert_requests(connection, claim, sizes)
        if self._store.insert_messages(connection, self._campaign_id, ids, chunks) == sum(sizes):
            claims = [Claim(request_id, range(size), deadline) for request_id, size in zip(ids, sizes, strict=True)]
        else:
            claims = [
                self._claim_in_part(connection, chunk, request_id, deadline)
                for chunk, request_id in zip(chunks, ids, strict=True)
            ]
        return claims if self._capping is None else self._capping.apply(connection, chunks, claims, now)

    def _claim_in_part(self, connection: Connection, chunk: Chunk, request_id: int, deadline: float) -> Claim:
        """Find out what of a chunk was inserted, and take over what is to be."""
        for key in chunk.keys:
            # Not all of take_over: what an earlier claim lost is there still, and is not posted under this one.
            if key in chunk.take_over:
                self._take_over(connection, key, chunk.take_over[key], request_id)
        holders = self._holders(connection, chunk.keys)
        # The first place of each key: one that came twice would be posted twice.
        places = {key: position for position, key in reversed(list(enumerate(chunk.keys)))}
        won = sorted(position for key, position in places.items() if holders[key].request_id == request_id)
        if not won:
            connection.execute(delete(request).where(request.c.id == request_id))
            return Claim(None, won, deadline)
        if len(won) < len(chunk.keys):
            connection.execute(update(request).where(request.c.id == request_id).values(submitted=len(won)))
        return Claim(request_id, won, deadline)

    def _take_over(self, connection: Connection, key: bytes, unknown_id: int, request_id: int) -> None:
        """Move a message from a request that is unknown to a new one; no-op when anything has changed meanwhile."""
        lapse(connection, request.c.id == unknown_id, self.clock())
        still_unknown = select(request.c.id).where(request.c.id == unknown_id, request.c.state == UNKNOWN)
        connection.execute(
            update(message)
            .where(
                message.c.campaign_id == self._campaign_id,
                message.c.message_key == key,
                message.c.request_id.in_(still_unknown),
            )
            .values(request_id=request_id, taken_from=unknown_id)
        )

    def lapse(self) -> None:
        """Call every claim of the campaign unknown whose deadline has passed.

        :raises LedgerError: when it was not committed.
        """
        with self._write() as connection:
            lapse(connection, request.c.campaign_id == self._campaign_id, self.clock())

    @property
    def _this_try(self) -> ColumnElement[bool]:
        """Give the condition for its claimants: Airflow may run a try twice at once, and one that waited has two."""
        if self._resumed:
            return and_(of_task(self._who), claimant.c.try_number == self._who.try_number)
        return claimant.c.id == self._claimant_id

    def earlier(self) -> EarlierClaims:
        """Give what earlier tries of this task instance claimed in the campaign.

        :raises LedgerError: when the ledger cannot be read.
        """
        return EarlierClaims(self._store, self._campaign_id, self._who, self._claimant_id)

    def parked_requests(self) -> Iterator[ParkedRequest]:
        """Give the requests that this try made before it waited, and that were sent or may have been, in their order.

        They are read as they are taken: to read on, nothing may have closed the store.

        :raises LedgerError: when the ledger cannot be read.
        """
        return requests_of(self._store, self._campaign_id, self._parked)
